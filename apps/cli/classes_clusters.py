"""`vsrt classes clusters`: which classes compete for the same links."""

from __future__ import annotations

import argparse

from apps.cli.allocate_input import add_input, read_as
from apps.cli.common import emit_json, printable
from controller.service_classes.documents import clusters_of

HELP = "show which classes compete for the same links"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the samples."""
    add_input(parser, "samples (JSON): {samples: {class: {link: number}}}")


def run(args: argparse.Namespace) -> int:
    """Print the clusters, one in a line."""
    found = read_as(args.input, clusters_of)
    if args.json:
        emit_json(found)
    else:
        for cluster in found["clusters"]:
            print(printable(", ".join(cluster)))
    return 0
