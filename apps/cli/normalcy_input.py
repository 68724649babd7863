"""What `vsrt normalcy fit` and `score` share: the options for input and parameters."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from apps.cli.common import InputError
from apps.cli.metric_file import read_metric_file
from controller.anomaly.normalcy.categories import CATEGORIES
from controller.anomaly.normalcy.settings import SettingError, Settings
from controller.anomaly.series import RawSeries


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file, the choice of a series in it, and the parameters."""
    add_file_arguments(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the method, lists with commas; docs/anomaly-normalcy.md names them",
    )


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file and the choice of a series in it."""
    parser.add_argument("--input", type=Path, required=True, metavar="FILE", help="metric file: timestamp,value")
    parser.add_argument("--member", help="the series of this member (or column) alone")
    parser.add_argument("--metric", help="the series of this metric alone")


def read_series(args: argparse.Namespace) -> list[RawSeries]:
    """Return the series that were asked for; what is notable about the file goes to standard error."""
    found = read_metric_file(args.input, metric=args.metric)
    for note in found.notes:
        print(f"vsrt: {note}", file=sys.stderr)
    if args.member is None:
        return found.series
    series = [one for one in found.series if one.name.member == args.member]
    if not series:
        names = sorted({one.name.member for one in found.series})
        shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        raise InputError(f"{args.input}: no member {args.member!r}; the file holds {shown or 'none'}")
    return series


def settings_of(words: Sequence[str]) -> Settings:
    """Return the parameters with what `--set` changes; InputError names the one at fault."""
    defaults = Settings()
    known = {field.name: getattr(defaults, field.name) for field in fields(Settings)}
    changed: dict[str, object] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in known:
            raise InputError(f"--set {word}: expected NAME=VALUE with one of {', '.join(known)}")
        changed[name] = _value(name, text, known[name])
    try:
        settings = Settings(**changed)  # type: ignore[arg-type]
        for category in settings.categories:
            if category not in CATEGORIES:
                raise SettingError(f"categories: {category!r} is none of {', '.join(CATEGORIES)}")
    except SettingError as error:
        raise InputError(f"--set {error}") from None
    return settings


def _value(name: str, text: str, default: object) -> object:
    try:
        if isinstance(default, tuple):
            parts = [part.strip() for part in text.split(",") if part.strip()]
            return tuple(parts) if isinstance(default[0], str) else tuple(float(part) for part in parts)
        return int(text) if isinstance(default, int) else float(text)
    except ValueError:
        what = "a whole number" if isinstance(default, int) else "a number"
        raise InputError(f"--set {name}: expected {what}, found {text[:64]!r}") from None
