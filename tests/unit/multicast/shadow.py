"""A core that follows the log of another one, as a member of a cluster does."""

from __future__ import annotations

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.events import DeadlineReached
from controller.log import LogEntry, LogEntryKind
from controller.multicast.core import MulticastCore
from controller.multicast.events import LeadTaken, LogFollowed

POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True),
)


class Shadow:
    """A core that is told what a world's log has, as a member of a cluster is."""

    def __init__(self, world, policy=POLICY):
        self.world = world
        self.core = MulticastCore(policy, world.now)
        self.told: dict[str, LogEntry] = {}
        self.effects = []

    def follow(self):
        """Tell what is new in the log, and what is no more."""
        now = {entry.key: entry for entry in self.world.log.read()}
        news = [LogEntry(LogEntryKind.OBSERVATION, key, None) for key in self.told if key not in now]
        news += [entry for key, entry in now.items() if self.told.get(key) != entry]
        self.told = now
        self.handle(LogFollowed(tuple(news)))
        while self.core.next_deadline() is not None:
            self.handle(DeadlineReached())

    def handle(self, event):
        self.effects += self.core.handle(event, self.world.now)

    def lead(self):
        """Make it the controller of the world, in the place of the one that ended."""
        world = self.world
        for queue in world.queues.values():
            queue.clear()
        world.connected.clear()
        world.applied = 0
        world.core = self.core
        world.feed(LeadTaken())
        while self.core.restart.is_under_way:
            world.feed(DeadlineReached())
