"""Which version of the controller this is."""

from __future__ import annotations


def version() -> str:
    """Return the version of the package that is installed."""
    from importlib import metadata

    try:
        return metadata.version("vsrt-controller")
    except metadata.PackageNotFoundError:
        return "unknown"
