from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from apps.cli import batch
from apps.cli.main import main

if importlib.util.find_spec("distributed") is None:
    pytest.skip("needs distributed", allow_module_level=True)

START_S = 1_767_225_600
SERIES, DAYS = 24, 8


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A scheduler in this process and two workers in processes of their own."""
    import distributed

    with distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=":0", silence_logs=50) as scheduler:
        address = scheduler.scheduler_address
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1"]
        workers = [subprocess.Popen([*command, "--no-dashboard"], stderr=subprocess.DEVNULL) for _ in range(2)]
        try:
            with distributed.Client(address, set_as_default=False) as client:
                client.wait_for_workers(2, timeout=60)
            yield address
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many ports in three groups, hourly, of which p04 is slow at the end."""
    lines = ["timestamp,member,peer_group,metric,value"]
    for place in range(SERIES):
        values = np.random.default_rng(place).gamma(4, 2, 24 * DAYS)
        values[-24:] += 40 * (place == 4)
        for row, value in enumerate(values):
            lines.append(f"{START_S + 3600 * (row + 1)},p{place:02d},g{place % 3},await,{value:.4f}")
    path = tmp_path_factory.mktemp("metrics") / "metrics.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("command", [("normalcy", "fit"), ("diagnose", "--window", "12", "--shift", "6")])
def test_a_cluster_and_all_cores_find_what_one_process_finds(
    cluster: str,
    metrics: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
):
    monkeypatch.setattr("apps.cli.diagnose_command.WORTH_CORES", 1)
    alone = printed(capsys, *command, "--input", metrics, "--jobs", "1")
    assert printed(capsys, *command, "--input", metrics, "--jobs", "2") == alone
    assert printed(capsys, *command, "--input", metrics, "--scheduler", cluster) == alone
    assert len(alone.get("series", alone.get("scores"))) >= SERIES


def test_both_workers_work(cluster: str):
    with batch.on_cluster(cluster) as run:
        found = list(run(worker_of, [2.0] * 40))
    assert len(set(found)) == 2


def worker_of(_: float) -> str:
    import distributed

    return distributed.get_worker().address


def test_an_error_on_the_cluster_is_the_error_of_the_work(
    cluster: str, metrics: Path, capsys: pytest.CaptureFixture[str]
):
    with batch.on_cluster(cluster) as run, pytest.raises(ZeroDivisionError):
        list(run(inverse, [1.0, 0.0]))


def inverse(value: float) -> float:
    return 1 / value


def failed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([*map(str, arguments), "--json"]) == 1
    found = capsys.readouterr()
    assert found.out == ""
    return found.err.strip()


def test_a_scheduler_that_is_away_is_told(
    metrics: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(batch, "CONNECT_S", 0.2)
    for address in ("tcp://127.0.0.1:1", "nowhere"):
        found = failed(capsys, "normalcy", "fit", "--input", metrics, "--scheduler", address)
        assert found.startswith(f"vsrt: --scheduler: no Dask scheduler answers at {address}: ")


def test_a_scheduler_without_workers_is_told(metrics: Path, capsys: pytest.CaptureFixture[str]):
    import distributed

    with distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=":0", silence_logs=50) as lonely:
        found = failed(capsys, "diagnose", "--input", metrics, "--scheduler", lonely.scheduler_address)
        assert found.endswith("has no workers")


def test_without_dask_what_to_install_is_told(
    metrics: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "distributed", None)
    found = failed(capsys, "diagnose", "--input", metrics, "--scheduler", "tcp://127.0.0.1:8786")
    assert found == (
        "vsrt: --scheduler: the package distributed is not installed; pip install 'vsrt-controller[dask]'"
    )


def test_jobs_and_a_scheduler_exclude_each_other(metrics: Path, capsys: pytest.CaptureFixture[str]):
    words = ["normalcy", "fit", "--input", str(metrics), "--scheduler", "tcp://127.0.0.1:8786", "--jobs", "2"]
    assert main(words) == 2
    assert "--jobs: the workers of --scheduler have their own number of threads" in capsys.readouterr().err


def test_a_process_that_dies_is_told():
    with pytest.raises(batch.OperationFailed, match="a process died"):
        list(batch.on_cores(2)(leave, [1, 2]))


def leave(_: int) -> None:
    os._exit(3)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_its_processes_end_with_it(number: signal.Signals):
    program = "import os, time\nfrom apps.cli.batch import on_cores\n" + inspect.getsource(say_and_stay)
    program += "list(on_cores(2)(say_and_stay, [1, 2]))\n"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ends = [os.pidfd_open(int(process.stdout.readline())) for _ in range(2)]
        process.send_signal(number)
        assert process.wait(10) == -number
        try:
            for end in ends:
                assert select.select([end], [], [], 10)[0], "the process is still there"
        finally:
            for end in ends:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(end, signal.SIGKILL)
                os.close(end)


def say_and_stay(_: int) -> None:
    os.write(1, f"{os.getpid()}\n".encode())
    time.sleep(60)
