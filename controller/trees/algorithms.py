"""The tree algorithms by name; `DEFAULT_ALGORITHM` is the one of the live controller."""

from __future__ import annotations

from controller.trees.algorithm import Algorithm
from controller.trees.literal import LiteralVsrt
from controller.trees.pim import FixedCoreTree, RandomCoreTree, SourceTree, StaticUplinkTree
from controller.trees.steiner import SteinerTree
from controller.trees.vsrt import Vsrt

DEFAULT_ALGORITHM = "vsrt"

ALGORITHMS: dict[str, type[Algorithm]] = {
    "vsrt": Vsrt,
    "vsrt-literal": LiteralVsrt,
    "pim-sm-fixed-core": FixedCoreTree,
    "pim-sm-random-core": RandomCoreTree,
    "pim-sm-static-uplink": StaticUplinkTree,
    "source-tree": SourceTree,
    "steiner": SteinerTree,
}
