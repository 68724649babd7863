"""What pyproject.toml cannot say: with VSRT_COMPILE=1 a wheel has its cores compiled to machine code, by mypyc.

Which modules those are, and why the others are not, stands in pyproject.toml under `tool.vsrt.compiled`. The sources
are the same, and a wheel has them either way. VSRT_COMPILE_LEVEL is the C compiler's level of optimisation, 2 by
default; at 0 a build takes a third of the time.
"""

from __future__ import annotations

import os
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Of mypyc's output, that the C compiler is handed at a time; each time it reads the declarations of all modules anew.
UNIT_BYTES = 2_000_000


class ParallelBuild(build_ext):
    """Compiles as many files at a time as there are processors, and the modules' files several in one."""

    def build_extensions(self) -> None:
        """Build all extensions, whose files depend on each other only when they are linked."""
        compile_files = self.compiler.compile

        def compile_each(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                compiled = pool.map(lambda source: compile_files([source], **options), joined(sources))
                return [file for files in compiled for file in files]

        self.compiler.compile = compile_each
        super().build_extensions()


def joined(sources: list[str]) -> list[str]:
    """Return C files that hold what the given ones do: those of modules, which mypyc names apart, some in each."""
    modules = sorted(source for source in sources if Path(source).name.startswith("__native_"))
    units: list[list[str]] = []
    room = 0
    for source in modules:
        size = Path(source).stat().st_size
        if size > room:
            units.append([])
            room = UNIT_BYTES
        units[-1].append(source)
        room -= size
    files = [source for source in sources if source not in modules]
    for number, unit in enumerate(units):
        file = Path(unit[0]).parent / f"__unit_{number}.c"
        file.write_text("".join(f'#include "{Path(source).name}"\n' for source in unit), encoding="utf-8")
        files.append(str(file))
    return files


def extensions() -> list[Extension]:
    """Return the modules to compile: none unless the variable asks for them and a wheel is built."""
    asked = os.environ.get("VSRT_COMPILE", "")
    if asked not in ("", "0", "1"):
        raise SystemExit(f"VSRT_COMPILE is 1 for compiled cores, 0 or empty for plain ones, and not {asked!r}.")
    if asked != "1":
        return []
    if "editable_wheel" in sys.argv:
        raise SystemExit(
            "VSRT_COMPILE=1 is not for editable installations: changes of the sources would have no effect."
        )
    if "bdist_wheel" not in sys.argv:
        return []
    from mypyc.build import mypycify

    found: list[Extension] = mypycify(
        ["--config-file=packaging/mypyc.ini", *compiled_modules()],
        opt_level=os.environ.get("VSRT_COMPILE_LEVEL", "2"),
        debug_level="0",
        multi_file=True,
        group_name="vsrt",
    )
    return found


def compiled_modules() -> list[str]:
    """Return the paths of the modules that are compiled."""
    table = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["vsrt"]["compiled"]
    paths = [path for name in table["modules"] for path in modules_of(Path(name))]
    return [str(path) for path in paths if str(path) not in table["left-out"]]


def modules_of(path: Path) -> list[Path]:
    """Return the module at a path, or those of a package without the packages below it."""
    return sorted(found for found in path.glob("*.py") if found.name != "__init__.py") if path.is_dir() else [path]


setup(ext_modules=extensions(), cmdclass={"build_ext": ParallelBuild})
