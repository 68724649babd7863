"""What a guest (`guest.py`) boots: the distribution's kernel, and a first file system made of this machine's files.

The kernel is not installed: `script/lib/setup.sh` unpacks its package under `build/guest-kernel`. The file system has
the modules that guests need, this Python with what the agents import, and iproute2. Nothing is mounted from outside.
"""

from __future__ import annotations

import json
import lzma
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import cache_from_source
from pathlib import Path

from apps.emulation import processes
from apps.emulation.agents import REPOSITORY
from apps.emulation.processes import EmulationError

KERNEL_DIRECTORY = REPOSITORY / "build" / "guest-kernel"
MACHINE = "x86_64"
EMULATOR = f"qemu-system-{MACHINE}"
MODULES = ("virtio_pci", "virtio_net", "virtio_console", "8021q", "bonding", "bridge")
PROGRAMS = ("ip", "bridge")
SYSTEM_PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
INIT_MODULE = "apps.emulation.guest_init"
PYTHON = str(Path(sys.executable).resolve())
INIT = f"#!{PYTHON} -S\nimport sys\nsys.path.insert(0, {str(REPOSITORY)!r})\nfrom {INIT_MODULE} import main\nmain()\n"
LOADED = "import json, sys\nprint(json.dumps([getattr(m, '__file__', None) for m in sys.modules.values()]))"
"""What a Python has loaded, from files and otherwise."""

CPIO_MAGIC, CPIO_END = b"070701", "TRAILER!!!"


def hindrance() -> str | None:
    """Return why no guest can boot on this machine, None where one can."""
    if platform.machine() != MACHINE:
        return f"guests need a processor of kind {MACHINE}"
    missing = [tool for tool in (EMULATOR, *PROGRAMS) if _program(tool) is None]
    if missing:
        return f"needs {', '.join(missing)} (Debian packages qemu-system-x86 and iproute2)"
    if not _kernels():
        return f"needs a kernel for guests in {KERNEL_DIRECTORY}, where script/test unpacks one"
    return None


def kernel() -> Path:
    """Return the path of the kernel; EmulationError, which says why, where no guest can boot."""
    why = hindrance()
    if why is not None:
        raise EmulationError(why)
    return _kernels()[-1]


def emulator() -> str:
    """Return the path of the emulator."""
    return _program(EMULATOR) or EMULATOR


def write_file_system(path: Path) -> None:
    """Write a guest's first file system, an archive that the kernel unpacks into memory."""
    files = {name: Path(name).read_bytes() for name in _programs()}
    for source in _python_files():
        files[str(source)] = source.read_bytes()
    modules = _modules()
    files |= {f"/modules/{place:02}-{name}.ko": data for place, (name, data) in enumerate(modules.items())}
    files["/init"] = INIT.encode()
    with path.open("wb") as archive:
        for number, (name, data) in enumerate(_with_directories(files).items(), 1):
            archive.write(_cpio_member(number, name.lstrip("/"), data, _modified_s(name)))
        archive.write(_cpio_member(0, CPIO_END, b"", 0))


def _kernels() -> list[Path]:
    return sorted(KERNEL_DIRECTORY.rglob("vmlinuz-*"))


def _program(name: str) -> str | None:
    return shutil.which(name, path=SYSTEM_PATH)


def _programs() -> list[str]:
    """Return the paths of all that is executed, and of the libraries that it needs."""
    programs = [str(_program(name)) for name in PROGRAMS]
    found = [PYTHON, *programs]
    extensions = [str(path) for path in _python_files() if ".so" in path.suffixes]
    listing = processes.run("ldd", PYTHON, *programs, *extensions)
    return found + sorted(set(re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", listing, re.MULTILINE)))


def _python_files() -> list[Path]:
    """Return the files of the modules that a guest's programs load, and of what Python has compiled of them."""
    command = (sys.executable, "-S", "-c", f"import sys\nsys.path.insert(0, {str(REPOSITORY)!r})\n")
    loaded = json.loads(processes.run(*command[:-1], f"{command[-1]}import {INIT_MODULE}\n{LOADED}"))
    sources = {Path(name) for name in loaded if name is not None and Path(name).is_file()}
    compiled = {Path(cache_from_source(str(path))) for path in sources if path.suffix == ".py"}
    return sorted(sources | {path for path in compiled if path.is_file()})


def _modules() -> dict[str, bytes]:
    """Return the kernel's modules, each behind those that it needs."""
    release = kernel().name.removeprefix("vmlinuz-")
    paths = {path.name.partition(".")[0].replace("-", "_"): path for path in _module_paths(release)}
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in found:
            return
        if name not in paths:
            raise EmulationError(f"the kernel {release} has no module {name}")
        data = _uncompressed(paths[name])
        needed = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in needed[1].decode().split(",") if needed and needed[1] else ():
            add(other.replace("-", "_"))
        found[name] = data

    for name in MODULES:
        add(name)
    return found


def _module_paths(release: str) -> Iterable[Path]:
    return (path for path in KERNEL_DIRECTORY.rglob("*.ko*") if release in path.parts)


def _uncompressed(path: Path) -> bytes:
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", str(path)], capture_output=True, check=True).stdout
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def _with_directories(files: dict[str, bytes]) -> dict[str, bytes | None]:
    """Return files by their paths, each behind its directories, which have no content."""
    found: dict[str, bytes | None] = {}
    for name, data in files.items():
        for parent in reversed(Path(name).parents[:-1]):
            found.setdefault(str(parent), None)
        found[name] = data
    return found


def _modified_s(name: str) -> int:
    """Return when a file of this machine's was modified: Python asks whether what it compiled is of that file."""
    return int(Path(name).stat().st_mtime) if Path(name).is_file() else 0


def _cpio_member(number: int, name: str, data: bytes | None, modified_s: int) -> bytes:
    """Return a member of an archive in cpio's format `newc`; a directory where there are no data."""
    mode = (stat.S_IFDIR if data is None else stat.S_IFREG) | 0o755
    content = data or b""
    encoded = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, modified_s, len(content), 0, 0, 0, 0, len(encoded), 0)
    head = CPIO_MAGIC + b"".join(b"%08X" % field for field in fields) + encoded
    return head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)
