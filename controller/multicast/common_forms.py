"""Which switches take entries that groups have in common: those of OpenFlow 1.3, but for what some refused."""

from __future__ import annotations

from controller.rules.compile import COVER_PREFIX, VERSION_MASK
from controller.rules.compile_shared import SHARED_MASK
from controller.rules.model import FlowKey
from controller.rules.pipeline import OPENFLOW_1_0, OPENFLOW_1_3

OLD = "it speaks OpenFlow 1.0"


class CommonForms:
    """What each switch can do for many groups at once.

    Attributes
    ----------
    speaking_1_3
        The switches of OpenFlow 1.3.
    masking
        Those of them that match a part of an address, so that cores share entries by sets of ports.
    covering
        Those of them that match an address of no group, so that they may be inside covering trees.
    unfit
        The switches that may be on no covering tree, and why.
    changed
        Those of them of which that is news.
    """

    def __init__(self) -> None:
        self.speaking_1_3: set[int] = set()
        self.masking: set[int] = set()
        self.covering: set[int] = set()
        self.unfit: dict[int, str] = {}
        self.changed: dict[int, None] = {}
        self._refused: dict[int, set[str]] = {}

    def speaks(self, dpid: int, ofp_version: int) -> None:
        """Take in which OpenFlow version a switch speaks; what one of 1.3 refused before, it still does."""
        refused = self._refused.get(dpid, ())
        is_new = ofp_version == OPENFLOW_1_3
        for known, may in (
            (self.speaking_1_3, is_new),
            (self.masking, is_new and "masking" not in refused),
            (self.covering, is_new and "covering" not in refused),
        ):
            (known.add if may else known.discard)(dpid)
        if ofp_version == OPENFLOW_1_0:
            self._is_unfit(dpid, OLD)
        elif dpid in self.covering:
            self.unfit.pop(dpid, None)
            self.changed.pop(dpid, None)

    def refused(self, dpid: int, key: FlowKey) -> str | None:
        """Take in that a switch does not know how to match what an entry does; return what it is done without there.

        None where that is nothing: the entry is of one group, or this was known.
        """
        match = key.match
        if match.eth_dst is None or dpid not in self.speaking_1_3:
            return None
        if match.eth_dst_mask in (VERSION_MASK, SHARED_MASK):
            kind, known, name = "masking", self.masking, "entries that groups share"
        elif match.ip_dst is None and match.eth_dst.startswith(COVER_PREFIX):
            kind, known, name = "covering", self.covering, "covering trees"
        else:
            return None
        if dpid not in known:
            return None
        known.discard(dpid)
        self._refused.setdefault(dpid, set()).add(kind)
        if kind == "covering":
            self._is_unfit(dpid, "it refused an entry of one")
            self.changed.pop(dpid, None)  # whoever took that in tells of it
        return name

    def _is_unfit(self, dpid: int, why: str) -> None:
        if self.unfit.get(dpid) != why:
            self.unfit[dpid] = why
            self.changed[dpid] = None
