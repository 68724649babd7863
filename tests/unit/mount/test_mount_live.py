"""`vsrt mount` by the kernel: what tools read and write is what the controller tells and is asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from apps.cli import mount_command
from apps.cli.common import InputError, OperationFailed
from apps.cli.main import main
from apps.cli.snapshot_socket import SocketSource
from apps.mount.tree import MountedTree
from fed_controller import FedController, event, multicast_documents, pool_documents
from required import leave_out
from served_dashboard import served

TOKEN = "correct-horse-battery-staple"
WAIT_S = 30.0
BUSY_S = 5.0
"""How much later than it should something is on a busy machine, at most."""

ROOT = Path(__file__).parents[3]


def can_mount() -> bool:
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError:
        return False
    return os.geteuid() == 0


def wait(reached: Callable[[], Any]) -> Any:
    until_s = time.monotonic() + WAIT_S
    while not (found := reached()):
        assert time.monotonic() < until_s
        time.sleep(0.02)
    return found


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[FedController]:
    made = FedController(tmp_path / "vsrt.sock", {**multicast_documents(), **pool_documents()})
    made.start()
    yield made
    made.stop()


def token_file(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o600)
    return str(path)


@contextmanager
def mount_of(tmp_path: Path, *source: str) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A controller's folder; the command is given relative paths, as somebody types them."""
    if not can_mount():
        leave_out("needs root and /dev/fuse")
    if find_spec("mfusepy") is None:
        leave_out("needs the package mfusepy")
    folder = tmp_path / "mnt"
    folder.mkdir()
    command = [sys.executable, "-m", "apps.cli.main", "mount", "mnt", *source]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        assert said == f"vsrt: {folder} shows the controller; Ctrl-C, or umount, ends that\n", said
        wait(lambda: (folder / "connection").exists())
        yield folder, process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=WAIT_S)
        subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


@pytest.fixture
def mounted(controller: FedController, tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """Mounted by the controller's socket."""
    with mount_of(tmp_path, "--socket", "vsrt.sock") as found:
        yield found


def test_what_is_read_is_what_the_controller_tells(
    mounted: tuple[Path, subprocess.Popen[str]], controller: FedController
) -> None:
    folder, _ = mounted
    assert sorted(path.name for path in (folder / "switches").iterdir()) == ["1", "10", "3", "4"]
    assert (folder / "switches/3/tier").read_text() == "tor\n"
    assert (folder / "addresses/video%2Fcam1/name").read_text() == "cam1\n"
    assert (folder / "policy/text").read_text().startswith("version: 1\n")
    assert not (folder / "switches/5").exists()
    assert (folder / "switches/3/tier").stat().st_size == 4
    controller.put("switches", "3", {**controller.documents["switches"]["3"], "tier": "aggregation"})
    wait(lambda: (folder / "switches/3/tier").read_text() == "aggregation\n")
    with (folder / "events").open("rb") as events:
        assert events.read().count(b"\n") == 2
        controller.put("events", "multicast-11", event(300, "a third one"))
        assert json.loads(wait(events.read))["text"] == "a third one", "one who follows the file reads on"
    for path in ("switches/3/tier", "events", "switches"):
        with pytest.raises(OSError, match=r"Permission denied|Function not implemented|Is a directory|not permitted"):
            (folder / path).write_text("x")


def test_what_is_written_is_done_in_the_name_of_who_mounted(
    mounted: tuple[Path, subprocess.Popen[str]], controller: FedController
) -> None:
    folder, _ = mounted
    (folder / "do/drain").write_text("3\n")
    assert controller.asked == [("switch-drain", {"dpid": 3})]
    assert controller.asked_by is not None
    answer = json.loads((folder / "do/answer").read_text())
    assert (answer["done"], answer["text"]) == (True, "switch 0000000000000003 is drained")
    (folder / "do/static-member-add").write_text("239.1.1.1 3:2")
    (folder / "do/static-member-remove").write_text("239.1.1.1 3:2\n239.1.1.2 3:2\n")
    assert [what for what, _ in controller.asked[1:]] == ["static-member-add", *["static-member-remove"] * 2]
    for wrong in ("nonsense extra\n", "3 --socket /x\n", "'\n", "\n"):
        with pytest.raises(OSError, match="Invalid argument"):
            (folder / "do/drain").write_text(wrong)
    assert len(controller.asked) == 4
    controller.refuse = ("there is no switch 3", "dpid")
    with pytest.raises(PermissionError):
        (folder / "do/drain").write_text("3\n")
    assert "there is no switch 3" in json.loads((folder / "do/answer").read_text())["text"]
    with pytest.raises(OSError, match="Message too long"):
        (folder / "do/drain").write_text("3" * 5000)
    with pytest.raises(FileNotFoundError):
        (folder / "do/explode").read_text()


def test_over_the_api_it_takes_the_token(controller: FedController, tmp_path: Path) -> None:
    with (
        served(controller.path, token_file=token_file(tmp_path)) as url,
        mount_of(tmp_path, "--url", url, "--token-file", "token") as (folder, _),
    ):
        assert (folder / "switches/3/tier").read_text() == "tor\n"
        (folder / "do/drain").write_text("3\n")
        assert controller.asked == [("switch-drain", {"dpid": 3})]


def test_over_the_api_without_a_token_nothing_is_done(controller: FedController, tmp_path: Path) -> None:
    with (
        served(controller.path, token_file=token_file(tmp_path)) as url,
        mount_of(tmp_path, "--url", url) as (folder, _),
    ):
        with pytest.raises(PermissionError):
            (folder / "do/drain").write_text("3\n")
        assert "--token-file" in json.loads((folder / "do/answer").read_text())["text"]
        assert controller.asked == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_unmounts_it(mounted: tuple[Path, subprocess.Popen[str]], number: signal.Signals) -> None:
    folder, process = mounted
    with (folder / "events").open():
        pass
    process.send_signal(number)
    assert process.wait(WAIT_S) == 0
    assert not folder.is_mount()
    assert list(folder.iterdir()) == []


def test_it_ends_when_it_is_unmounted_and_follows_a_controller_that_comes_back(
    mounted: tuple[Path, subprocess.Popen[str]], controller: FedController
) -> None:
    folder, process = mounted
    controller.stop()
    wait(lambda: (folder / "connection").read_text().startswith("away: "))
    assert (folder / "switches/3/tier").read_text() == "tor\n"
    with pytest.raises(OSError, match="Host is down"):
        (folder / "do/drain").write_text("3\n")
    controller.start()
    wait(lambda: (folder / "connection").read_text() == "answers\n")
    subprocess.run(["umount", str(folder)], check=True)
    assert process.wait(WAIT_S) == 0


@pytest.fixture
def separate(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A controller that is a process of its own."""
    fabric = ROOT / "tests" / "support" / "page_fabric.py"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{fabric.parent}"}
    process = subprocess.Popen(
        [sys.executable, fabric, tmp_path / "vsrt.sock"], stdin=subprocess.PIPE, env=environment
    )
    wait((tmp_path / "vsrt.sock").exists)
    yield process
    process.kill()
    process.communicate()


def test_a_controller_that_is_stopped_is_told_soon_and_so_is_one_that_goes_on(
    separate: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    with mount_of(tmp_path, "--socket", "vsrt.sock") as (folder, _):
        assert (folder / "connection").read_text() == "answers\n"
        separate.send_signal(signal.SIGSTOP)
        stopped_s = time.monotonic()
        wait(lambda: (folder / "connection").read_text().startswith("silent: it has said nothing for "))
        assert time.monotonic() - stopped_s < SocketSource(Path()).silence_s + BUSY_S
        assert (folder / "switches/3/tier").read_text() == "core\n", "what was known stays"
        separate.send_signal(signal.SIGCONT)
        wait(lambda: (folder / "connection").read_text() == "answers\n")


def test_who_is_not_there_or_in_the_way_is_told(
    controller: FedController, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "file").touch()
    assert main(["mount", str(folder), "--socket", str(controller.path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert main(["mount", str(tmp_path / "absent")]) == 2
    assert "absent: No such file" in capsys.readouterr().err
    (folder / "file").unlink()
    monkeypatch.setattr(mount_command, "DEVICE", tmp_path / "fuse")
    assert main(["mount", str(folder), "--socket", str(controller.path)]) == 1
    assert "fuse: No such file or directory: nothing can be mounted; it takes `modprobe" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lacks", "told"), [("ImportError()", mount_command.EXTRA), ("OSError('no libfuse')", mount_command.LIBRARY)]
)
def test_a_missing_extra_or_library_is_told_with_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lacks: str, told: str
) -> None:
    (tmp_path / "lacking_fuse.py").write_text(f"raise {lacks}\n")
    (tmp_path / "mnt").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(mount_command, "MODULE", "lacking_fuse")
    monkeypatch.setattr(mount_command, "DEVICE", Path("/dev/null"))
    assert main(["mount", str(tmp_path / "mnt")]) == 1
    assert told in capsys.readouterr().err


def test_a_controller_that_never_answered_is_told_before_anything_is_mounted(tmp_path: Path) -> None:
    feeder = mount_command.TreeFeeder(SocketSource(tmp_path / "no.sock"), MountedTree([]))
    with pytest.raises((OperationFailed, InputError), match="no controller answers"):
        feeder.begin()


class BrokenSource:
    """Follows nothing, by a defect."""

    def follow(self, _sections: object, beside: object = ()) -> Iterator[Any]:
        raise ZeroDivisionError(beside)


def test_a_defect_of_what_follows_is_raised_and_told() -> None:
    tree = MountedTree([])
    with pytest.raises(ZeroDivisionError):
        mount_command.TreeFeeder(BrokenSource(), tree).begin()  # type: ignore[arg-type]
    assert tree.connection().startswith(b"ended: ")
