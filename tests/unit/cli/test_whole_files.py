"""Files of results are there whole or not at all: a full disk, an error and a kill leave what was there before."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apps.cli.common import InputError, OperationFailed
from apps.cli.main import main
from apps.cli.whole_files import write_new, write_whole, write_whole_text
from capture_files import data, pcap


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Have no file of this process grow beyond a size, as on a disk without room."""
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
        sys.dont_write_bytecode = writes_bytecode


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_text("old")
    path.chmod(0o640)
    write_whole_text(path, "caf\u00e9\n")
    assert path.read_text(encoding="utf-8") == "caf\u00e9\n" and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert names(tmp_path) == {"result"}


def test_a_secret_is_its_owner_s_alone_whatever_was_there(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    for _ in range(2):
        write_whole_text(path, "key", is_secret=True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.chmod(0o644)


def test_a_new_file_has_the_permissions_of_any(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_whole_text(tmp_path / "result", "text")
    assert (tmp_path / "result").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "result", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole_text(link, "new")
    assert link.is_symlink() and target.read_text() == "new"


def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole_text(pipe, "told")
        assert os.read(reader, 100) == b"told"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(OperationFailed, match="full: No space left on device"):
        write_whole_text(Path("/dev/full"), "x")
    with pytest.raises(OperationFailed, match="Is a directory"):
        write_whole_text(tmp_path, "x")
    assert names(tmp_path) == {"pipe"}


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_text("old")
    with files_of_at_most(1000), pytest.raises(OperationFailed, match="result: File too large"):
        write_whole_text(path, "x" * 5000)
    assert path.read_text() == "old" and names(tmp_path) == {"result"}


def test_an_interrupt_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_text("old")

    def interrupted(beside: Path) -> None:
        beside.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, interrupted)
    assert path.read_text() == "old" and names(tmp_path) == {"result"}


def test_a_kill_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_text("old")
    script = (
        "import os, signal, sys; from pathlib import Path; from apps.cli.whole_files import write_whole\n"
        "def write(beside):\n"
        "    beside.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_whole(Path(sys.argv[1]), write)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_a_new_file_is_made_where_nothing_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_new(tmp_path / "new", "caf\u00e9\n")
    assert (tmp_path / "new").read_text(encoding="utf-8") == "caf\u00e9\n"
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert names(tmp_path) == {"new", "other"}


def test_what_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    path, dangling = tmp_path / "mine", tmp_path / "dangling"
    path.write_text("mine\n")
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="mine: the file is there already, and is left as it is"):
        write_new(path, "other\n")
    with pytest.raises(InputError, match="mine: go on with it"):
        write_new(path, "other\n", "go on with it")
    with pytest.raises(InputError, match="dangling: the file is there already"):
        write_new(dangling, "other\n")
    assert path.read_text() == "mine\n" and names(tmp_path) == {"mine", "dangling"}


@pytest.mark.parametrize("without_links", [None, errno.EPERM, errno.EOPNOTSUPP], ids=["links", "vfat", "fuse"])
def test_who_makes_the_file_meanwhile_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_links: int | None
) -> None:
    """Also where the file system has no hard links; there a new file is made all the same."""

    def refused(self: Path, target: Path) -> None:
        raise OSError(without_links, os.strerror(without_links or 0))

    if without_links is not None:
        monkeypatch.setattr(Path, "hardlink_to", refused)
    write_new(tmp_path / "new", "text")
    assert (tmp_path / "new").read_text() == "text"
    path, whole_fsync = tmp_path / "mine", os.fsync

    def made_meanwhile(handle: int) -> None:
        path.write_text("mine")
        whole_fsync(handle)

    monkeypatch.setattr(os, "fsync", made_meanwhile)
    with pytest.raises(InputError, match="mine: the file is there already"):
        write_new(path, "other")
    assert path.read_text() == "mine" and names(tmp_path) == {"mine", "new"}


def test_a_new_file_in_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(OperationFailed, match="new: No such file or directory"):
        write_new(tmp_path / "nowhere" / "new", "text")


def test_nothing_is_left_of_a_new_file_on_a_full_disk(tmp_path: Path) -> None:
    with files_of_at_most(1000), pytest.raises(OperationFailed, match="new: File too large"):
        write_new(tmp_path / "new", "x" * 5000)
    assert names(tmp_path) == set()


def test_a_kill_leaves_no_half_of_a_new_file(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from apps.cli.whole_files import write_new\n"
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_new(Path(sys.argv[1]), 'half')"
    )
    path = tmp_path / "new"
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == -signal.SIGKILL
    assert not path.exists()
    write_new(path, "whole")
    assert path.read_text() == "whole"


def test_topology_make_leaves_the_file_of_before_where_the_disk_is_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_left_on_a_full_disk(tmp_path / "result", capsys, "topology", "make", "fattree", "-o")


def test_policy_discover_leaves_the_file_of_before_where_the_disk_is_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "changes.csv"
    rows = [f"1,leaf1:{number},port,{name},1,2" for number in range(12) for name in ("mtu", "guard")]
    log.write_text("\n".join(("time,resource,type,property,old,new", *rows, "")))
    assert_left_on_a_full_disk(tmp_path / "result", capsys, "policy", "discover", "--log", str(log), "-o")


def test_trace_scenario_leaves_the_file_of_before_where_the_disk_is_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = tmp_path / "feed.pcap"
    capture.write_bytes(pcap([(number * 10**9, data("239.1.1.1")) for number in range(5)]))
    words = ("trace", "scenario", str(capture), "--receivers", "2", "-o")
    assert_left_on_a_full_disk(tmp_path / "result", capsys, *words)


def assert_left_on_a_full_disk(result: Path, capsys: pytest.CaptureFixture[str], *words: str) -> None:
    """Assert that a command that writes a file has it whole or leaves it as it was."""
    result.write_text("old")
    before = names(result.parent)
    with files_of_at_most(100):
        status = main([*words, str(result)])
    told = capsys.readouterr().err
    assert status == 1 and "result: File too large" in told, told
    assert result.read_text() == "old" and names(result.parent) == before
    assert main([*words, str(result)]) == 0
    assert result.read_text() != "old"
