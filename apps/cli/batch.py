"""The same function over many things: on all cores of this machine, or on the workers of a Dask scheduler."""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from apps.cli.common import InputError, OperationFailed
from apps.cli.progress import ProgressBar

Item = TypeVar("Item")
Result = TypeVar("Result")

CONNECT_S = 5
PR_SET_PDEATHSIG = 1  # prctl(2)

WAITING_PER_THREAD = 2
"""Things that are sent ahead to each thread of the workers, so that none waits for the next."""


class MapLike(Protocol):
    """Returns the results of a function for each item, in their order, as `map` does."""

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item], /) -> Iterable[Result]:  # noqa: D102
        ...


def add_batch_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where much work is done."""
    parser.add_argument("--jobs", type=int, metavar="N", help="processes on this machine (default: one per core)")
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="work on a Dask cluster instead, as tcp://host:8786; needs distributed"
    )


@contextmanager
def batch(args: argparse.Namespace, what: str, *, worth_it: bool) -> Iterator[MapLike]:
    """Yield what does the work that the arguments ask for: by this process alone where more is not worth it.

    `what` names the items in the progress bar.
    """
    if args.jobs is not None and args.jobs < 1:
        raise InputError(f"--jobs: expected at least 1, found {args.jobs}")
    if args.scheduler is not None:
        if args.jobs is not None:
            raise InputError("--jobs: the workers of --scheduler have their own number of threads")
        with on_cluster(args.scheduler) as run:
            yield _with_progress(run, what)
        return
    jobs = args.jobs or os.cpu_count() or 1
    yield _with_progress(on_cores(jobs) if worth_it and jobs > 1 else _here, what)


def _with_progress(run: MapLike, what: str) -> MapLike:
    def shown(function: Callable[[Item], Result], items: Sequence[Item], /) -> Iterator[Result]:
        bar = ProgressBar()
        try:
            for done, result in enumerate(run(function, items), 1):
                bar.draw(what, done, len(items))
                yield result
        finally:
            bar.clear()

    return shown


def _here(function: Callable[[Item], Result], items: Sequence[Item], /) -> Iterable[Result]:
    return map(function, items)


_held: tuple[Callable[[Any], Any], Sequence[Any]] | None = None
"""In a process of a pool, the function and the items; they are inherited, not sent."""


def _hold(function: Callable[[Any], Any], items: Sequence[Any], parent: int) -> None:
    global _held
    _end_with(parent)
    _held = function, items


def _end_with(parent: int) -> None:
    """Have this process end at once when its parent does, however that ends: it would wait for work for ever."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _of_held(number: int) -> Any:
    assert _held is not None
    function, items = _held
    return function(items[number])


def on_cores(jobs: int) -> MapLike:
    """Return what works with that many processes, each of which has a copy of this one's memory until it writes."""

    def run(function: Callable[[Item], Result], items: Sequence[Item], /) -> Iterator[Result]:
        if len(items) < 2:
            yield from map(function, items)
            return
        with ProcessPoolExecutor(
            min(jobs, len(items)),
            mp_context=get_context("fork"),
            initializer=_hold,
            initargs=(function, items, os.getpid()),
        ) as pool:
            try:
                yield from pool.map(_of_held, range(len(items)))
            except BrokenProcessPool:
                raise OperationFailed("a process died, most likely for want of memory; try fewer --jobs") from None

    return run


@contextmanager
def on_cluster(address: str) -> Iterator[MapLike]:
    """Yield what works on the workers of a Dask scheduler, which have the same release of this package."""
    try:
        from distributed import Client
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise OperationFailed(
            "--scheduler: the package distributed is not installed; pip install 'vsrt-controller[dask]'"
        ) from None
    try:
        client: Any = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OperationFailed(f"--scheduler: no Dask scheduler answers at {address}: {error}") from None

    def run(function: Callable[[Item], Result], items: Sequence[Item], /) -> Iterator[Result]:
        threads = sum(client.nthreads().values())
        if not threads:
            raise OperationFailed(f"--scheduler: the scheduler at {address} has no workers")
        waiting: deque[Any] = deque()
        for item in items:
            if len(waiting) >= WAITING_PER_THREAD * threads:
                yield waiting.popleft().result()
            (sent,) = client.scatter([item], hash=False)
            waiting.append(client.submit(function, sent, pure=False))
        while waiting:
            yield waiting.popleft().result()

    with client:
        try:
            yield run
        except (KilledWorker, OSError) as error:
            raise OperationFailed(f"--scheduler: the work on {address} was given up: {error}") from None
