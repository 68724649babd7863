"""The tree algorithms by name; `DEFAULT_ALGORITHM` is the one of the live controller."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from controller.trees import builders
from controller.trees.algorithm import Algorithm

DEFAULT_ALGORITHM = "vsrt"


def find_algorithms() -> dict[str, type[Algorithm]]:
    """Return the algorithms of all modules in `controller.trees.builders`, the default one first.

    ValueError where two have one name.
    """
    found: dict[str, type[Algorithm]] = {}
    for module in iter_modules(builders.__path__):
        for name, algorithm in import_module(f"{builders.__name__}.{module.name}").ALGORITHMS.items():
            if name in found:
                raise ValueError(f"two tree algorithms are called {name}")
            found[name] = algorithm
    return {name: found[name] for name in sorted(found, key=lambda name: (name != DEFAULT_ALGORITHM, name))}


ALGORITHMS: dict[str, type[Algorithm]] = find_algorithms()
