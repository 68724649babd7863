"""Functions at which scripts can look: those of modules that are loaded; what they take and return, as records."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from importlib.machinery import ExtensionFileLoader
from types import BuiltinFunctionType, FunctionType, MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple, cast, get_type_hints

from controller.probes.value_kinds import HIDDEN, kind_of

ENTER, EXIT = "enter", "exit"
CALLS = (ENTER, EXIT)

PACKAGE = "controller"
"""Functions of its modules are looked at."""

UNSEEN = ("controller.probes", "controller.wire.addresses", "controller.discovery.tokens")
"""Modules of which none is: firings are made of the first two, so that none fires another; the last makes secrets."""

_COMPILED = "and scripts look at functions that are not"


class FunctionFields(NamedTuple):
    """What a script sees of a function: records of its entry, whose fields are `parameters`, and of its exit.

    `entered` and `left` are named tuples; `left` has `result`, where its kind is one that scripts see, and `took_ns`.
    """

    parameters: tuple[str, ...]
    entered: type
    left: type
    has_result: bool


class LoadedFunctions:
    """The functions and methods of a package's modules that are loaded and not compiled, by their full names.

    Parameters
    ----------
    package
        Its modules, and those below it, are looked at.
    unseen
        Modules, with those below them, that are not.
    """

    def __init__(self, package: str = PACKAGE, unseen: tuple[str, ...] = UNSEEN) -> None:
        self._package = package
        self._unseen = unseen
        self._fields: dict[str, FunctionFields] = {}

    def names(self) -> list[str]:
        """Return the names of all, in order."""
        found: list[str] = []
        for name, module in list(sys.modules.items()):
            if self._is_seen(name) and isinstance(module, ModuleType):
                found += (f"{name}.{path}" for path, _function in _functions(module))
        return sorted(found)

    def find(self, name: str) -> FunctionType | None:
        """Return the function of a name, None where a script cannot look at it."""
        module, path = self._module_of(name)
        owner, _, last = path.rpartition(".")
        holder = module if not owner or module is None else vars(module).get(owner)
        if module is None or not self._is_seen(module.__name__) or not isinstance(holder, type | ModuleType):
            return None
        if isinstance(holder, type) and holder.__module__ != module.__name__:
            return None
        function = _plain(vars(holder).get(last))
        return function if _is_defined_in(module, function) else None

    def refusal(self, name: str) -> str:
        """Return why a script cannot look at what a name stands for, empty where nothing is known by it.

        Of a name with ``*`` or ``?`` it is told where all that it matches is compiled.
        """
        if "*" in name or "?" in name:
            is_compiled = any(fnmatchcase(each, name) for each in self._compiled())
            return f"what {name} matches is compiled here, {_COMPILED}" if is_compiled else ""
        module, path = self._module_of(name)
        if module is None or self.find(name) is not None:
            return ""
        if not self._is_seen(module.__name__):
            return f"scripts look at no function of {module.__name__}"
        found: Any = module
        for part in path.split("."):
            found = vars(found).get(part) if isinstance(found, type | ModuleType) else None
        found = _plain(found)
        if not callable(found) or isinstance(found, type):
            return ""
        if hasattr(found, "__code__") or hasattr(found, "__wrapped__"):
            return f"{name} is made by what decorates it, and scripts look at plain functions"
        return f"{name} is compiled here, {_COMPILED}"

    def fields(self, name: str) -> FunctionFields:
        """Return what a script sees of a function; KeyError where there is none."""
        if name not in self._fields:
            function = self.find(name)
            if function is None:
                raise KeyError(name)
            self._fields[name] = _fields_of(function)
        return self._fields[name]

    def record(self, what: str, name: str) -> type:
        """Return the type of record that ``enter`` or ``exit`` of a function gives; KeyError where there is none."""
        fields = self.fields(name)
        return fields.entered if what == ENTER else fields.left

    def _compiled(self) -> Iterator[str]:
        """Yield the names of functions and methods of modules that are compiled."""
        for name, module in list(sys.modules.items()):
            if self._is_seen(name) and isinstance(getattr(module, "__loader__", None), ExtensionFileLoader):
                yield from (f"{name}.{path}" for path in _callables(module))

    def _is_seen(self, module: str) -> bool:
        return _is_below(module, (self._package,)) and not _is_below(module, self._unseen)

    def _module_of(self, name: str) -> tuple[ModuleType | None, str]:
        """Return the module that a name begins with, the longest that is loaded, and the rest of the name."""
        module, dot, rest = name.rpartition(".")
        while dot:
            found = sys.modules.get(module)
            if isinstance(found, ModuleType):
                return found, rest
            module, dot, last = module.rpartition(".")
            rest = f"{last}.{rest}"
        return None, ""


def _is_below(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in packages)


def _functions(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """Yield functions that a module's text defines, and methods of its classes; properties are fields, not these."""
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            for method, inner in list(vars(value).items()):
                function = _plain(inner)
                if _is_defined_in(module, function):
                    yield f"{name}.{method}", function
        elif _is_defined_in(module, value):
            yield name, value


def _callables(module: ModuleType) -> Iterator[str]:
    """Yield the names of functions that a compiled module has, and of methods of its classes."""
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) == module.__name__ and isinstance(value, type):
            yield from (f"{name}.{method}" for method, inner in vars(value).items() if callable(_plain(inner)))
        elif isinstance(value, BuiltinFunctionType):
            yield name


def _plain(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value


def _is_defined_in(module: ModuleType, value: Any) -> bool:
    if not isinstance(value, FunctionType) or value.__globals__ is not vars(module):
        return False
    name = value.__name__
    is_special = name.startswith("__") and name.endswith("__") and name not in ("__init__", "__call__")
    return value.__code__.co_filename == module.__file__ and value.__module__ == module.__name__ and not is_special


def _fields_of(function: FunctionType) -> FunctionFields:
    hints = _hints(function)
    code = function.__code__
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    parameters = tuple(name for name in named if _is_shown(name, hints))
    entered = _record("Entered", [(name, hints[name]) for name in parameters])
    result = hints.get("return")
    has_result = result is not None and kind_of(result) is not None
    shown = [("result", result)] if has_result else []
    return FunctionFields(parameters, entered, _record("Left", [*shown, ("took_ns", int)]), has_result)


def _record(name: str, fields: list[tuple[str, Any]]) -> type:
    made: Any = NamedTuple(name, fields)  # type: ignore[misc]
    return cast("type", made)


def _is_shown(name: str, hints: Mapping[str, Any]) -> bool:
    if name in HIDDEN or name.startswith("_") or keyword.iskeyword(name) or name not in hints:
        return False
    return kind_of(hints[name]) is not None


def _hints(function: FunctionType) -> Mapping[str, Any]:
    """Return the annotations that can be told: names that only a checker of types imports cannot."""
    found: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        said = SimpleNamespace(__annotations__={name: annotation})
        try:
            found |= get_type_hints(said, function.__globals__)
        except (NameError, AttributeError, TypeError):
            continue
    return MappingProxyType(found)
