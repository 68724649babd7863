"""What records say of their fields, in compiled modules too, which forget most of it.

Where an annotation is a tuple or a union a compiled class has `type` for it, and of a property no annotation at all.
The source, which lies beside, has both.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from functools import cache
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import GetSetDescriptorType
from typing import Any, get_type_hints


def field_types(kind: type) -> dict[str, Any]:
    """Return the types of the fields that a named tuple or dataclass annotates, its bases' too, by their names."""
    found = get_type_hints(kind)
    for each in reversed(kind.__mro__):
        fields = [node for node in _compiled_body(each) if isinstance(node, ast.AnnAssign)]
        said = {node.target.id: node.annotation for node in fields if isinstance(node.target, ast.Name)}
        found |= _meant(said, each)
    return found


def property_types(kind: type) -> dict[str, Any]:
    """Return the types of the properties that a protocol has, by their names."""
    kinds = property | GetSetDescriptorType
    properties = {name: each for name, each in vars(kind).items() if isinstance(each, kinds)}
    said = {
        node.name: node.returns
        for node in _compiled_body(kind)
        if isinstance(node, ast.FunctionDef) and node.name in properties and node.returns is not None
    }
    if said:
        return _meant(said, kind)
    getters = {name: each.fget for name, each in properties.items() if isinstance(each, property)}
    return {name: get_type_hints(getter)["return"] for name, getter in getters.items()}


def _meant(said: Mapping[str, ast.expr], kind: type) -> dict[str, Any]:
    """Return what annotations mean in the module of a class, without those that only a checker of types can tell."""
    names, found = vars(sys.modules[kind.__module__]), {}
    for name, annotation in said.items():
        try:
            found[name] = eval(compile(ast.Expression(annotation), kind.__module__, "eval"), names)
        except NameError:
            continue
    return found


def _compiled_body(kind: type) -> list[ast.stmt]:
    """Return the statements of a class of a compiled module; none of another one, or without the source."""
    spec = getattr(sys.modules.get(kind.__module__), "__spec__", None)
    if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
        return []
    return _bodies(spec.loader.path, kind.__module__).get(kind.__name__, [])


@cache
def _bodies(path: str, module: str) -> dict[str, list[ast.stmt]]:
    """Return the statements of the classes of a module by their names, from the source beside its machine code."""
    try:
        source = Path(path).with_name(module.rpartition(".")[2] + ".py").read_bytes()
    except OSError:
        return {}
    return {node.name: node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
