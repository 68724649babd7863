"""How long it takes to read a field of a mounted controller (`vsrt mount`), beside a file of the same size elsewhere.

    PYTHONPATH=. python benchmarks/mounted_reads.py [--switches 320] [--reads 2000] [--repeats 5] [--json]

As root, where /dev/fuse is. A process serves documents of switches as a controller's socket does; a field of each in
turn is opened, read and closed, then one that stays open is read again and again. In turn the same is done with files
on a tmpfs.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from measure import Measurement, report

from apps.status_server import StatusServer
from controller.snapshot.log import DocumentLog

WAIT_S = 60.0


@contextmanager
def mounted(folder: Path, switches: int) -> Iterator[Path]:
    """Mount documents of so many switches below a folder."""
    documents = {str(dpid): {"dpid": dpid, "tier": "tor", "connected": True} for dpid in range(1, switches + 1)}
    sections = {
        "switches": DocumentLog(documents.keys, documents.get),
        "status": DocumentLog(lambda: ["status"], lambda _key: {"ready": True}),
    }
    path, at = folder / "vsrt.sock", folder / "mounted"
    server = StatusServer(
        path, {}, lambda answer: answer(), logging.getLogger("mounted"), app="multicast", sections=sections
    )
    server.start()
    at.mkdir()
    process = subprocess.Popen([sys.executable, "-m", "apps.cli.main", "mount", str(at), "--socket", str(path)])
    try:
        until_s = time.monotonic() + WAIT_S
        while not (at / "switches" / str(switches)).exists():
            if process.poll() is not None or time.monotonic() > until_s:
                raise SystemExit("nothing was mounted")
            time.sleep(0.05)
        yield at / "switches"
    finally:
        process.terminate()
        process.wait()
        server.stop()


def opened_us(paths: Sequence[Path], reads: int) -> float:
    """Return the mean time that opening, reading and closing takes."""
    names = [str(path) for path in paths]

    def read(number: int) -> None:
        file = os.open(names[number % len(names)], os.O_RDONLY)
        os.read(file, 4096)
        os.close(file)

    return _mean_us(read, reads)


def again_us(path: Path, reads: int) -> float:
    """Return the mean time that reading takes from a file that stays open."""
    file = os.open(path, os.O_RDONLY)
    try:
        return _mean_us(lambda _number: os.pread(file, 4096, 0), reads)
    finally:
        os.close(file)


def _mean_us(read: Callable[[int], object], reads: int) -> float:
    begun_s = time.perf_counter()
    for number in range(reads):
        read(number)
    return (time.perf_counter() - begun_s) / reads * 1e6


def main() -> None:
    """Print both, for the mounted folder and for the tmpfs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switches", type=int, default=320)
    parser.add_argument("--reads", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    samples: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        peers = [Path(memory) / str(number) for number in range(args.switches)]
        for peer in peers:
            peer.write_text("tor\n")
        with mounted(Path(name), args.switches) as folder:
            paths = [folder / str(dpid) / "tier" for dpid in range(1, args.switches + 1)]
            for _ in range(args.repeats):
                samples.setdefault("mounted: open, read, close", []).append(opened_us(paths, args.reads))
                samples.setdefault("mounted: read", []).append(again_us(paths[0], args.reads))
                samples.setdefault("tmpfs: open, read, close", []).append(opened_us(peers, args.reads))
                samples.setdefault("tmpfs: read", []).append(again_us(peers[0], args.reads))
    report(
        [Measurement(what, "us", found) for what, found in samples.items()],
        as_json=args.json,
        source="benchmarks/mounted_reads.py",
    )


if __name__ == "__main__":
    main()
