"""When the counters of senders are read for groups that may leave flow tables, and what they tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import inf

from controller.multicast.group import Sender
from controller.multicast.table_accounts import TableAccounts
from controller.overcommit.residence import LEAST_READING_INTERVAL_S


class TableReadings:
    """Packets of groups that are in, as switches count them.

    Attributes
    ----------
    is_used
        Whether groups may be out.
    reading_s
        When the counters of senders are to be read next; infinite where nobody may leave.
    hits
        Packets of groups that were in, by the switch that their senders are at.
    is_told
        Whether all switches that were asked have answered, or owe it for too long, and nobody has taken that in.
    packets
        What was told last: packets of each group since the reading before, of those that had any.
    known_s, late
        When switches were asked that told it, and the groups with a sender of which one owes it, and until when
        theirs is known.
    """

    def __init__(self, accounts: TableAccounts) -> None:
        self.is_used = False
        self.reading_s = inf
        self.hits: Counter[int] = Counter()
        self.is_told = False
        self._accounts = accounts
        self._asked_s = -inf
        self._counted: dict[bytes, int] = {}
        self.packets: dict[bytes, int] = {}
        self.known_s = -inf
        self.late: Mapping[bytes, float] = {}

    def counted(self, address: bytes, sender: Sender, packet_count: int, dpid: int, now: float) -> None:
        """Take in how many packets a switch has counted of a sender to a group that is in."""
        packets = packet_count - sender.packet_count if packet_count >= sender.packet_count else packet_count
        sender.packet_count = packet_count
        if packets:
            sender.sent_s = now
            self.hits[dpid] += packets
            self._counted[address] = self._counted.get(address, 0) + packets

    def schedule(self) -> None:
        """Find when the counters of senders are to be read next."""
        if not self.is_used or not self._accounts.limits:
            self.reading_s = inf
        else:
            due_s = self._accounts.tables.residence.next_reading_s()
            self.reading_s = max(due_s, self._asked_s + LEAST_READING_INTERVAL_S)

    def asked(self, now: float) -> None:
        """Take it that switches were asked for the counters of their senders."""
        self._asked_s = now
        self.schedule()

    def told(self, known_s: float, late: Mapping[bytes, float]) -> None:
        """Take it that all switches that were asked at a time have answered, or owe it for too long.

        `late` are the groups with a sender at one that does, or is not connected, and until when theirs is known.
        """
        self.is_told = self.is_used
        self.known_s, self.late = known_s, late

    def take(self, now: float) -> None:
        """Take in what was told; of silent groups only where tables do not have ample room for all."""
        self.is_told = False
        residence = self._accounts.tables.residence
        self.packets, self._counted = self._counted, {}
        if self._accounts.is_ample:
            residence.read_active(self.packets, now, self.known_s, self.late)
        else:
            residence.read(self.packets, now, self.known_s, self.late)
