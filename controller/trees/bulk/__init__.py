"""The default algorithm in arrays, for very many groups at once: `place` a set of them, or follow a `Stream`."""

from controller.trees.bulk.directions import directed_load_bps
from controller.trees.bulk.fabric import BulkFabric
from controller.trees.bulk.groups import Groups
from controller.trees.bulk.placement import Placement, place
from controller.trees.bulk.stream import Stream

__all__ = ["BulkFabric", "Groups", "Placement", "Stream", "directed_load_bps", "place"]
