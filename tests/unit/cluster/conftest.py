from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from cluster_histories import World

from apps.cluster.etcd import Access, EtcdEngine
from controller.cluster.engine import Engine
from controller.cluster.memory_engine import MemoryEngine, MemoryStore
from etcd_server import EtcdServer
from simulated_world import until

DEADLINE_S = 20.0
"""A busy machine is no silent one."""


class Stored(Protocol):
    """A store as the tests of the contract have it, whichever it is."""

    def engine(self) -> Engine: ...

    def compact(self) -> None: ...

    def empty(self) -> None: ...


class MemoryStored:
    """The twin."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    def engine(self) -> Engine:
        return MemoryEngine(self.store)

    def compact(self) -> None:
        self.store.compact()

    def empty(self) -> None:
        self.store.empty()


class EtcdStored:
    """A server of etcd."""

    def __init__(self, server: EtcdServer) -> None:
        self.server = server
        self.engines: list[EtcdEngine] = []

    def engine(self) -> Engine:
        self.engines.append(EtcdEngine(Access((self.server.endpoint,)), DEADLINE_S))
        return self.engines[-1]

    def compact(self) -> None:
        engine = EtcdEngine(Access((self.server.endpoint,)), DEADLINE_S)
        revision = engine._post("/v3/kv/range", {"key": "YQ=="}, True)["header"]["revision"]
        engine._post("/v3/kv/compaction", {"revision": revision, "physical": True}, True)
        engine.close()

    def empty(self) -> None:
        self.server.set_up_anew()

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


@pytest.fixture(scope="session")
def etcd_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    server = EtcdServer(tmp_path_factory.mktemp("etcd")).start()
    yield server
    server.kill()


@pytest.fixture(params=["memory", "etcd"])
def stored(request: pytest.FixtureRequest) -> Iterator[Stored]:
    if request.param == "memory":
        yield MemoryStored()
        return
    stored = EtcdStored(request.getfixturevalue("etcd_server"))
    yield stored
    stored.close()


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    """A server for one test, which may stop it."""
    server = EtcdServer(tmp_path / "own").start()
    yield server
    server.kill()


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """Keys of this test alone, for the server outlives it."""
    return f"/test/{abs(hash(request.node.nodeid))}/"


@pytest.fixture
def world() -> World:
    """Three members, one of which leads three switches."""
    world = World(7)
    until(world, world.is_settled)
    world.run(world.now + 1.0)
    return world
