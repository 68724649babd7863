"""Who gets and gives a tree is what looking at every link of every tree of every group decides."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from dataclasses import replace

import pytest

from controller.config.service_class_settings import Aliases
from controller.config.service_classes import ServiceClass
from controller.config.terms import parse_prefix
from controller.kernel.domains import address_of
from controller.multicast import alias_control
from controller.multicast.alias_columns import FIGURES, GroupColumns
from controller.multicast.alias_measures import SAMPLES, ClassTotals, GroupSample, fare_of
from controller.service_classes.goals import DISCRETIONARY, Goal, GoalKind
from controller.service_classes.measures import LinkUse, group_queue, group_utilisation
from controller.service_classes.transfers import PACES, RECEIVER_QUEUES, ClassState, GroupState, decide
from controller.trees import flows
from controller.wire.addresses import format_ip, parse_ip
from wire_frames import fields_of

from .conftest import OPEN, leaf_spine

PACKET_BITS = 12_000
LOOK = GroupColumns.look
GROUPS = [parse_ip(f"239.{first}.0.{last}") for first in (1, 2, 3) for last in (1, 2, 3)]
CLASSES = (
    ServiceClass("late", 2, (parse_prefix("239.1.0.0/16"),), goal=Goal(GoalKind.DELAY, 0.02)),
    ServiceClass("lossy", 1, (parse_prefix("239.2.0.1/32"),), goal=Goal(GoalKind.LOSS, 0.5)),
    ServiceClass("slow", 3, (parse_prefix("239.2.0.0/16"),), goal=Goal(GoalKind.VELOCITY, 60.0)),
    ServiceClass("aimless", 4, (parse_prefix("239.3.0.1/32"),), aliases=False),
)


class Full:
    """What a whole look at all links finds, beside what the core's control keeps."""

    def __init__(self, world, pace):
        self.world, self.pace = world, PACES[pace]
        self.moved = self.looks = 0
        self.samples = {}

    def look(self, columns, block, links, is_whole):
        """Look at all groups, which are one block here, and assert that each link of their trees tells the same."""
        LOOK(columns, block, links, is_whole)
        control = self.world.core.aliases
        for address in self.world.core.plane.groups:
            wanted = self.sample(address, control._now)
            if address not in control._seen:
                assert not wanted.rate_bps
                self.samples.pop(address, None)
                continue
            row = control._seen[address].row
            found = [float(columns.means(figure, 0.0)[row]) for figure in range(FIGURES)]
            assert found == pytest.approx(list(wanted[1:]))
            self.samples.setdefault(address, deque(maxlen=SAMPLES)).append(wanted)
        self.looks += 1

    def sample(self, address, now_s):
        """Return what is seen of a group by the accounted load of each link of its trees."""
        plane = self.world.core.plane
        group, loads, own = plane.groups[address], plane.forest.loads, defaultdict(int)
        rate_bps = sum(sender.rate_bps for sender in group.senders.values() if sender.admitted)
        for tree in (tree for each in group.all_trees() for tree in plane.islands.trees(each.key)):
            index = flows.index_of(tree, loads)
            for node, above in tree.parent.items() if rate_bps else ():
                up, down = flows.link_load(tree, node)
                own[index[node][above]] += up
                own[index[above][node]] += down
        uses = [LinkUse(bps, loads.bps[n], loads.capacity_bps[n]) for n, bps in own.items() if bps]
        return GroupSample(
            now_s,
            group_queue(uses),
            group_utilisation(uses),
            rate_bps,
            sum(use.own_bps for use in uses) / PACKET_BITS,
            sum(use.own_bps / use.capacity_bps for use in uses),
            max((max(0.0, 1 - use.capacity_bps / use.load_bps) for use in uses), default=0.0),
        )

    def decide(self, moment, classes, groups, pace):
        """Decide by all groups, and compare it with what those that the control picked decide."""
        core, control = self.world.core, self.world.core.aliases
        seen, full = control._seen, {}
        for address in set(seen) & set(core.plane.groups):
            group, mean = core.plane.groups[address], self.mean(address, self.pace.window_s)
            if group.trees is not None or mean.queue > 0:
                full[format_ip(address)] = self.state(address, group, mean)
        waiting = sorted(((-s.queue, parse_ip(n)) for n, s in full.items() if s.queue > RECEIVER_QUEUES[-1]))
        for _, address in waiting[: alias_control.TRIALS]:
            state, gain = full[name := format_ip(address)], core.aliases.trial.would_gain(core.plane.groups[address])
            full[name] = state._replace(gain=gain, enabled=self.is_open(address, gain))
        by_class = []
        for each in CLASSES:
            names = [n for n in full if each.name in self.classes_of(parse_ip(n))]
            means = [self.mean(parse_ip(name), self.pace.hurried_window_s) for name in names]
            totals = ClassTotals(
                *(sum(getattr(mean, what) for mean in means) for what in ("queue", "sending", "arrivals_per_s")),
                sum(mean.rate_bps for mean in means),
                sum(mean.rate_bps * (1 - mean.loss) for mean in means),
            )
            if names:
                by_class.append(ClassState(each.name, each.importance, *fare_of(each.goal, totals), tuple(names)))
        wanted, found = decide(moment, by_class, full, pace), decide(moment, classes, groups, pace)
        assert [t[:3] for t in found.transfers] == [t[:3] for t in wanted.transfers]
        assert found[1:] == wanted[1:]
        self.moved += len(found.transfers)
        return found

    def mean(self, address, window_s):
        """Return the means of the samples of a group that were taken in a time until its last one."""
        samples = list(self.samples[address])
        recent = [sample for sample in samples if sample.now_s > samples[-1].now_s - window_s] or samples[-1:]
        return GroupSample(*(sum(values) / len(recent) for values in zip(*recent, strict=True)))

    def classes_of(self, address):
        """Return the names of the classes of who sends to a group: the first one about it."""
        senders = self.world.core.plane.groups[address].senders.values()
        if not any(sender.admitted for sender in senders):
            return []
        group = address_of(address)
        return [each.name for each in CLASSES if any(prefix.contains(group) for prefix in each.groups)][:1]

    def is_open(self, address, gain):
        group, control = self.world.core.plane.groups[address], self.world.core.aliases
        tree = self.world.core.forest.tree(address)
        is_steady = all(each.is_standing and not each.is_leaving for each in group.all_trees())
        is_closed = "aimless" in self.classes_of(address)
        return bool(
            not (tree is None or tree.detached or group.held or group.unsupported or is_closed)
            and is_steady
            and (gain or control.trees.may_give(address))
        )

    def state(self, address, group, mean):
        names = self.classes_of(address)
        importance = min((each.importance for each in CLASSES if each.name in names), default=DISCRETIONARY)
        return GroupState(
            importance,
            len(group.all_trees()),
            mean.queue,
            mean.utilisation,
            False,
            self.is_open(address, False),
            self.world.core.aliases._moved_s.get(address),
        )


@pytest.mark.parametrize("pace", ["fast", "steady"])
@pytest.mark.parametrize("seed", range(4))
def test_the_groups_that_are_looked_at_decide_as_all_would(make_world, monkeypatch, seed, pace):
    generator = random.Random(seed)
    policy = replace(OPEN, aliases=Aliases(mode="dynamic", pace=pace, pool=3, per_group=2), classes=CLASSES)
    world = make_world(leaf_spine(leaves=6, spines=4, hosts=2), policy, 4)
    full = Full(world, pace)
    hosts = sorted(world.hosts)
    monkeypatch.setattr(alias_control, "decide", full.decide)
    monkeypatch.setattr(GroupColumns, "look", lambda *found: full.look(*found))
    senders = {}
    for address in GROUPS:
        chosen = generator.sample(hosts, 7)
        senders[address] = chosen[: generator.choice((1, 2, 4))]
        for name in chosen[4:]:
            world.join(name, address)
    world.settle()
    for address, names in senders.items():
        for name in names:
            world.send(name, address)
    world.settle()
    for _ in range(8):
        rates = {
            (address, name): generator.choice((0.0, 0.01, 0.1, 0.3)) * generator.uniform(5e8, 1e9)
            for address, names in senders.items()
            for name in names
        }
        if generator.random() < 0.5:
            world.join(generator.choice(hosts), generator.choice(GROUPS))
        for _ in range(10):
            for (address, name), rate_bps in rates.items():
                host = world.hosts[name]
                world.fabric.deliver(*host.place, fields_of(world.data(name, address)), round(rate_bps / 4))
            world.advance(2.0)
    assert full.moved
    assert full.looks > 8
