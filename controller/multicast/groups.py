"""All groups: every change of members, senders, routers, trees or switches becomes the edits that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from controller.datapath.lanes import Urgency
from controller.effects import Effect, Put, Remove
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.events import ANY_SOURCE, Interest
from controller.multicast.aliases import AliasTrees
from controller.multicast.common_forms import CommonForms
from controller.multicast.covers import Covers
from controller.multicast.duties import duties_out, receivers_of
from controller.multicast.ended_groups import EndedGroups
from controller.multicast.found import FoundEntries
from controller.multicast.graft import Local, Look, changed_duties, grafted_duties, pruned_duties, sender_duties
from controller.multicast.group import Group, InterestFollower, Sender, SenderKey
from controller.multicast.group_rules import GroupRules, Needs
from controller.multicast.router_groups import GroupRouting
from controller.multicast.shared_entries import SharedEntries
from controller.multicast.staged_edits import StagedEdits
from controller.multicast.transition import Stage, Transitions, Way
from controller.multicast.tree_duties import TreeDuties
from controller.multicast.tree_links import is_link, pairs_and_ports, port_of
from controller.rules.compile import LOWER, NO_DUTY, ChannelDuty, SwitchDuty, by_key, common_duty, supports
from controller.rules.compile_shared import GroupDuty, shares
from controller.rules.cookies import group_cookie
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry
from controller.rules.pipeline import MULTICAST_TAG
from controller.rules.plans import UNHURRIED_DRAIN_S
from controller.trees.forest import Forest
from controller.trees.islands import AliasKey, Islands, main_key
from controller.trees.tree import Change, Key, TreeRole
from topology.aggregations import Place
from topology.graph import Graph

_RECEIVER = TreeRole.RECEIVER


class GroupPlane:
    """All groups over one forest, which `use_forest` alone changes, and `islands` of it; some are under `covers`.

    What a switch holds for a group depends on the group's members, senders and tree alone; in which order edits go
    out, `Transitions` says. A new sender's entry comes after those of its way. `cables` are the links over which
    packets may still run, also those that the forest does without. `changed` is told of groups of which the plane
    learns something by itself: rates, and that a switch cannot serve them. `unheard` are the groups with admitted
    senders that reach no member and no router, the first to be so first. `followed_by` is told what members want,
    `starts_out` asked whether a new group begins without entries, `ended` told of one that is no more.
    `sender_count` counts the admitted senders, `tree_change_count` the changes of trees. `vlan_groups` and
    `vlan_senders` count groups and admitted senders by VLAN. `rules` lower what switches do, as `forms` lets them.
    """

    def __init__(
        self,
        forest: Forest,
        installer: Installer,
        cables: Graph,
        changed: Callable[[bytes], None],
        vlan_ports: VlanPorts,
    ) -> None:
        self.groups: dict[bytes, Group] = {}
        self.vlan_groups, self.vlan_senders = Counter[int](), Counter[int]()
        self.sender_count = self.tree_change_count = 0
        self.forest = forest
        self.islands = Islands(forest)
        self._installer = installer
        self.changed = changed
        self._ofp_versions: dict[int, int] = {}
        self.forms = CommonForms()
        self._speaking_1_3 = self.forms.speaking_1_3
        self.covers = Covers(self.forms)
        self.transitions = Transitions(installer, forest.graph, cables, self.covers)
        self._vlan_ports = vlan_ports
        self.rules = GroupRules(vlan_ports, self._ofp_versions, self.forms.masking)
        self.routed = GroupRouting(self)
        self.routers = self.routed.table
        self.tree_duties = TreeDuties(self, self._ofp_versions)
        self.aliases = AliasTrees(self, installer, forest.graph)
        self.unheard: dict[bytes, None] = {}
        self.followed_by: InterestFollower | None = None
        self.starts_out: Callable[[bytes], bool] | None = None
        self.ended: Callable[[bytes], None] | None = None
        self.found = FoundEntries(vlan_ports)
        self._ended, self.shared = EndedGroups(), SharedEntries()

    # Members, senders and routers

    def interest_changed(
        self,
        dpid: int,
        port_no: int,
        address: bytes,
        interest: Interest | None,
        now: float,
        urgency: Urgency = Urgency.PROMPT,
    ) -> list[Effect]:
        """Apply what members at a port want of a group now (None: nothing any more); a join is timed."""
        group = self.groups.get(address)
        if group is None:
            group = self._new_group(address)
            is_plain = interest is ANY_SOURCE and dpid in self._speaking_1_3 and self.followed_by is None
            if is_plain and group.is_fresh() and not (self.routed.has_ports and self.routers.of_group(address)):
                return self._first_member(group, dpid, port_no, now, urgency)
        named_before = bool(group.named_sources)
        others_before = dpid in group.interests
        before = group.set_interest(dpid, port_no, interest)
        if self.followed_by is not None and before != interest:
            self.followed_by.interest_changed(group, (dpid, port_no), before, interest, now)
        if (dpid in group.interests) is not others_before:
            self.note_unheard(group)
        clock = self._installer.clock
        if interest is not None:
            clock.begin(now)
        try:
            if group.trees is None:
                return self._served(group, dpid, others_before, named_before, now, urgency)
            effects: list[Effect] = []
            for tree in list(group.trees):
                tree.named_sources = group.named_sources
                effects += self._served(tree, dpid, others_before, named_before, now, urgency)
            self.aliases.settle(group)
            return effects
        finally:
            if interest is not None:
                clock.end()

    def _first_member(self, group: Group, dpid: int, port_no: int, now: float, urgency: Urgency) -> list[Effect]:
        """Serve the first member of a group, where there is nothing of it yet: one who wants every source."""
        group.interests[dpid] = {port_no: ANY_SOURCE}
        change = self.forest.join(group.key, dpid, _RECEIVER)
        if not (change.added or change.detached):
            return self._put_host_ports(group, dpid, (port_no,), now, urgency, timed=True)
        with self._installer.clock.timing(now, True):
            return self._graft(group, change, dpid, now, urgency)

    def _served(
        self, group: Group, dpid: int, others_before: bool, named_before: bool, now: float, urgency: Urgency
    ) -> list[Effect]:
        """Have a tree follow what the members at one of its switches want now."""
        address, others_now = group.address, dpid in group.interests
        routers = self.routers.of_group(address)
        change: Change | None = None
        if others_now:
            if not others_before:
                change = self.forest.join(group.key, dpid, _RECEIVER)
        elif others_before and not (dpid in routers and group.is_wanted):
            change = self.forest.leave(group.key, dpid, _RECEIVER)
        if routers or named_before or group.named_sources or group.unsupported is not None or group.is_out:
            return self.refresh(group, (change, *self.routed.sync(group)), now, urgency)
        if change is None and others_before and others_now:
            return self._refresh_host_ports(group, dpid, now, urgency)
        if change is None or change.empty:
            tree = self.forest.tree(group.key)
            if tree is None or (not tree.parent and tree.root == dpid):
                return self._refresh_host_ports(group, dpid, now, urgency)
        if change is None:
            return self.refresh(group, (None,), now, urgency)
        if others_now:
            return self._graft(group, change, dpid, now, urgency)
        return self.refresh(group, (change,), now, urgency, (pruned_duties, dpid))

    def sender_set(self, address: bytes, key: SenderKey, sender: Sender, now: float) -> list[Effect]:
        """Add a sender, or replace what is known of it."""
        group = self.groups.get(address) or self._new_group(address)
        before = group.senders.get(key)
        is_queued_otherwise = self._count_sender(group, before, sender)
        tree = group if group.trees is None else self.aliases.tree_for(group, key.dpid, sender, before)
        sender.alias = tree.number
        group.senders[key] = sender
        enters = sender.admitted and (tree.parts is None or tree.sends_at(key.dpid))
        change = self.forest.join(tree.key, key.dpid, TreeRole.SENDER) if enters else None
        return self._sender_changed(tree, key.dpid, change, now, is_queued_otherwise)

    def sender_removed(self, address: bytes, key: SenderKey, now: float) -> list[Effect]:
        """Take a sender off its group."""
        group = self.groups[address]
        sender = group.senders.pop(key)
        is_queued_otherwise = self._count_sender(group, sender, None)
        tree = group if group.trees is None else self.aliases.tree_of(group, sender)
        effects = [] if group.parts is None else self.aliases.flows.sender_left(group, key.dpid, now)
        return effects + self._sender_changed(tree, key.dpid, None, now, is_queued_otherwise)

    def _sender_changed(
        self, tree: Group, dpid: int, change: Change | None, now: float, is_queued_otherwise: bool
    ) -> list[Effect]:
        if change is None and not tree.sends_at(dpid):
            change = self.forest.leave(tree.key, dpid, TreeRole.SENDER)
        self.note_unheard(tree)
        has_routers = bool(self.routers.of_group(tree.address))
        if tree.named_sources or tree.unsupported is not None or has_routers or tree.is_out:
            effects = self.refresh(tree, (change, *self.routed.sync(tree)), now)
        else:
            effects = self.refresh(tree, (change,), now, local=(sender_duties, dpid))
        if has_routers and tree.trees is not None:
            for other in tree.trees:
                effects += self.refresh(other, (None, *self.routed.sync(other)), now)
        if is_queued_otherwise:
            effects += self._refresh_all(tree, now)
        if tree.trees is not None:
            self.aliases.settle(tree.trees[0])
        return effects

    def queues_changed(self, address: bytes, now: float) -> list[Effect]:
        """Have the packets of a group wait in the queue that the policy gives it now."""
        group = self.groups.get(address)
        if group is None or not self.rules.set_queue(group):
            return []
        return self._refresh_all(group, now, Urgency.BULK)

    def _refresh_all(self, tree: Group, now: float, urgency: Urgency = Urgency.PROMPT) -> list[Effect]:
        """Compile all trees of a group again, whose entries are others."""
        return [effect for each in tree.all_trees() for effect in self.refresh(each, (), now, urgency)]

    def sender_measured(self, address: bytes, dpid: int) -> None:
        """Tell the forest what the senders of a group at one switch send together."""
        for tree in self.groups[address].all_trees():
            rate_bps = tree.rate_at(dpid)
            self.forest.set_rate(tree.key, dpid, rate_bps)
            self.islands.set_rate(tree.key, dpid, rate_bps)
        self.changed(address)

    def receiving_ports(self, address: bytes, source: bytes) -> Iterator[Place]:
        """Yield every (dpid, OIF) with a member or router that wants a packet of `source`, were it sent now."""
        group = self.groups.get(address)
        if group is None or group.unsupported is not None:
            return iter(())
        return receivers_of(group, source, self.islands.trees(address), self.routers.of_group(address, group.senders))

    # Trees and switches

    def switch_version(self, dpid: int, ofp_version: int, now: float) -> list[Effect]:
        """Note which OpenFlow version a datapath speaks."""
        if (before := self._ofp_versions.get(dpid)) == ofp_version:
            return self.aliases.switch_connected(dpid, False, before, now)
        self._ofp_versions[dpid] = ofp_version
        self.forms.speaks(dpid, ofp_version)
        effects = self.aliases.switch_connected(dpid, True, before, now)
        return effects + self.recompile(dpid, now, Urgency.BULK)

    def recompile(self, dpid: int, now: float, urgency: Urgency = Urgency.PROMPT) -> list[Effect]:
        """Compile again whatever passes a switch, whose version changed."""
        trees = [tree for group in self.groups.values() for tree in group.all_trees() if dpid in tree.duties]
        return [effect for tree in trees for effect in self.refresh(tree, (), now, urgency)]

    def trees_changed(self, changes: Iterable[Change], now: float, urgency: Urgency = Urgency.PROMPT) -> list[Effect]:
        """Follow trees that the forest repaired, re-attached or moved."""
        by_group: dict[Key, list[Change]] = {}
        for change in changes:
            by_group.setdefault(main_key(change.key), []).append(change)
        effects: list[Effect] = []
        for key, changed in by_group.items():
            group = self.aliases.alias(key) if isinstance(key, AliasKey) else self.groups.get(key)  # type: ignore[call-overload]
            if group is not None:
                effects += self.refresh(group, changed, now, urgency)
        return effects

    def use_forest(self, forest: Forest, now: float) -> list[Effect]:
        """Move every group to its tree in a forest without trees, over the same graph."""
        before, self.forest, self.islands = self.islands, forest, Islands(forest)
        return self.trees_changed(list(before.moved_to(self.islands)), now, Urgency.BULK)

    # Restarts

    def adopt(
        self,
        address: bytes,
        links: Iterable[tuple[int, ...]],
        tree_version: int,
        now: float,
        number: int = 0,
        apart: Iterable[tuple[bytes, int]] = (),
    ) -> list[Effect]:
        """Give a group, or an alias, the tree that its entries on switches stand for, as far as it is still valid.

        A link is two switches; that by one of several cables has the ports at both after them. Channels that were
        `apart` have the numbers of covering trees.
        """
        group = self.aliases.alias(AliasKey(address, number)) if number else self.groups.get(address)
        if group is None:
            return []
        self.islands.adopt(group.key, *pairs_and_ports(links))
        group.tree_version = self.covers.adopted(group, tree_version, list(self.islands.trees(group.key)))
        if apart or group.apart:
            self.covers.adopt_apart(group, apart, self.routers.of_group(address, group.senders))
        group.left_links = group.unconfirmed = None
        return self.refresh(group, (), now, Urgency.BULK, way=Way.RESTORED)

    def release(self, now: float) -> list[Effect]:
        """Serve the groups that waited, beside what the switches still hold for them."""
        effects: list[Effect] = []
        for group in list(self.groups.values()):
            if group.held:
                group.held = False
                group.tree_version = self.found.version_beside(group.cookie)
                effects += self.refresh(group, (), now, Urgency.BULK)
                self.aliases.touch(group.address)
        self.found.clear()
        return effects

    # From a group to edits

    def _new_group(self, address: bytes) -> Group:
        group = self._ended.take(address)
        if group is None:
            cookie = group_cookie(MULTICAST_TAG, address)
            versions = self.found.versions(cookie)
            group = Group(address, cookie, 0, versions is not None)
            group.old_versions = versions
        group.is_out = not group.held and self.starts_out is not None and self.starts_out(address)
        if self.rules.queue_of_group is not None or group.queue_id is not None:
            self.rules.set_queue(group)
        self.groups[address] = group
        if self.aliases.is_used:
            self.aliases.touch(address)
        if group.vlan_id:
            self.vlan_groups[group.vlan_id] += 1
        return group

    def _count_sender(self, group: Group, before: Sender | None, after: Sender | None) -> bool:
        """Count what a group has for a sender of before; tell whether its packets wait in another queue now."""
        change = (after is not None and after.admitted) - (before is not None and before.admitted)
        self.sender_count += change
        if group.vlan_id:
            self.vlan_senders[group.vlan_id] += change
        return self.rules.sender_changed(group, before, after)

    def note_unheard(self, group: Group) -> None:
        """Keep account of the groups with senders that reach no member and no router."""
        if not group.interests and group.is_wanted and not self.routers.of_group(group.address):
            self.unheard[group.address] = None
        else:
            self.unheard.pop(group.address, None)

    def _refresh_host_ports(self, group: Group, dpid: int, now: float, urgency: Urgency) -> list[Effect]:
        """Change the host ports of one switch: nothing else depends on them, and every member wants every source."""
        address = group.address
        ofp_version = self._ofp_versions.get(dpid, 0)
        is_plain = not group.held and not shares(group.tree_version) and ofp_version in LOWER
        if not is_plain or supports(ofp_version, address) is not None:
            return self.refresh(group, (), now, urgency)
        ports = group.interests.get(dpid)
        host_ports = tuple(sorted(ports)) if ports else ()
        old = group.duties.get(dpid)
        if old is None and host_ports:
            return self._put_host_ports(group, dpid, host_ports, now, urgency)
        old = old or NO_DUTY
        trunk_ports = old.channels[0].trunk_ports if old.channels else ()
        channels = (ChannelDuty(None, trunk_ports, host_ports),) if host_ports or trunk_ports else ()
        self._end_if_empty(group)
        if channels == old.channels:
            return []
        duty = SwitchDuty(group.tree_version, channels, old.senders)
        before = by_key(group.rules.get(dpid, ()))
        after = self.rules.lower(group, dpid, duty)
        group.set_duty(dpid, duty if channels or old.senders else None, tuple(after.values()))
        edits: Stage = [(dpid, Put(rule)) for key, rule in after.items() if before.get(key) != rule]
        edits += [(dpid, Remove(key)) for key in before if key not in after]
        return self._installer.change((edits,), now, 0.0, urgency)

    def _put_host_ports(
        self, group: Group, dpid: int, host_ports: tuple[int, ...], now: float, urgency: Urgency, timed: bool = False
    ) -> list[Effect]:
        """Give a switch that did nothing for a group the one entry for its host ports."""
        group.duties[dpid] = duty = common_duty(group.tree_version, (), host_ports)
        rule = self.rules.default(group, dpid, duty.channels[0])
        group.rules[dpid] = (rule,)
        return self._installer.put(((dpid, rule),), now, urgency, is_timed=timed)

    def _graft(self, group: Group, change: Change, dpid: int, now: float, urgency: Urgency) -> list[Effect]:
        """Serve the first member at a switch by what its own way needs, as far as that tells.

        A tree that only grew changes in place, unless the group has left links lately.
        """
        is_moving = group.held or (group.unconfirmed is not None and self.transitions.settle(group, now))
        duties = None if is_moving else self._locally(group, change, grafted_duties, dpid)
        if duties is None:
            return self.refresh(group, (change,), now, urgency, (grafted_duties, dpid))
        self.tree_change_count += not change.empty
        all_duties, all_rules = group.duties, group.rules
        puts: list[tuple[int, FlowEntry]] = []
        for at, duty in sorted(duties.items()):
            before = all_rules.get(at, ())
            _, (channel,), senders = duty  # type: ignore[misc]
            if senders:
                after = tuple(self.rules.lower(group, at, duty).values())  # type: ignore[arg-type]
                puts += [(at, rule) for rule in after if rule not in before]
            else:
                rule = self.rules.default(group, at, channel)
                after = (rule,)
                if rule not in before:
                    puts.append((at, rule))
            all_duties[at] = duty  # type: ignore[assignment]
            all_rules[at] = after
        return self._installer.put(puts, now, urgency)

    def _locally(self, group: Group, change: Change, look: Look, dpid: int) -> dict[int, GroupDuty | None] | None:
        """Return what switches do otherwise, told from the way of one alone; None where that does not tell."""
        forest, address = self.forest, group.address
        tree = forest.tree(group.key)
        if tree is None or shares(group.tree_version):
            return None
        port: Callable[[int, int], int] = forest.graph.port
        if change.left or tree.cables is not None:
            if any(is_link((tree,), cable) for cable in change.left):
                return None
            port = port_of((tree,), change, forest.graph, forest.loads)
        duties = look(group, tree, change, dpid, port)
        if duties is None or duties.keys() <= self._speaking_1_3:
            return duties
        versions = self._ofp_versions
        are_served = all(versions.get(at) in LOWER and supports(versions[at], address) is None for at in duties)
        return duties if are_served else None

    def refresh(
        self,
        group: Group,
        changes: Sequence[Change | None],
        now: float,
        urgency: Urgency = Urgency.PROMPT,
        local: Local | None = None,
        needs: Needs | None = None,
        pause_s: float = 0.0,
        way: Way | None = None,
    ) -> list[Effect]:
        """Compile a group again and send the difference, make before break; all counts anew without a change.

        Where all that happened is `local` to the way of one switch, that is compiled alone, as far as it tells. What
        a group `needs` is known of one that comes in: new senders' entries wait for the rest, however late a switch
        is. They come `pause_s` after it. The `way` to the new entries follows from `changes` where it is None; where
        it is given nobody waits, and each stage is `pause_s` after the one before.
        """
        if group.held:
            self._end_if_empty(group)
            return []
        is_anew, is_unhurried = not changes, way is not None
        changes = self.islands.followed(group.key, changes)
        self.tree_change_count += any(change is not None and not change.empty for change in changes)
        if group.is_out and group.is_nowhere():
            self._end_if_empty(group)
            return []
        unconfirmed = group.unconfirmed or set()
        trees = list(self.islands.trees(group.key))
        is_parted = group.apart is not None
        is_left = is_parted and self.covers.leave_apart(group, self.routers.of_group(group.address, group.senders))
        way = way or self.transitions.choose(group, trees, changes, self.forest.loads, now)
        if is_left and way is Way.IN_PLACE:
            way = self.transitions.anew(group)
        effects: list[Effect] = []
        is_local = local is not None and way is Way.IN_PLACE
        duties = self._locally(group, changes[0] or Change(group.key), *local) if is_local else None  # type: ignore[misc]
        if duties is None:
            known = needs.duties if needs is not None else None
            all_duties = duties_out(group) if group.is_out else known or self.tree_duties.of(group, effects)
            if not is_anew and way is not Way.INTERRUPTED:
                duties = changed_duties(group.duties, all_duties)
            else:
                duties = {**dict.fromkeys(group.duties), **all_duties}
        edits = StagedEdits(group, way, unconfirmed, self.shared, is_parted, now)
        for dpid in sorted(duties):
            duty = duties[dpid]
            after = {} if duty is None else needs.rules[dpid] if needs else self.rules.lower(group, dpid, duty)
            edits.switch(dpid, by_key(group.rules.get(dpid, ())), after)
            group.set_duty(dpid, duty, tuple(after.values()))
        if group.arrives and way is Way.IN_PLACE:
            group.arrives = edits.wait_for_rest(self._installer)
        self.transitions.note(group, way is Way.BESIDE, unconfirmed, edits.all_puts(), edits.removes)
        self._end_if_empty(group)
        if stages := edits.stages():
            drain_s, is_patient = max(pause_s, edits.drain_s), needs is not None or group.arrives
            drains = range(1, len(stages)) if is_unhurried else ()
            effects += self._installer.change(stages, now, drain_s, urgency, drains, is_patient=is_patient)
        return effects

    def move_aside(self, group: Group, now: float, *, shared: bool) -> list[Effect]:
        """Have a group go over to entries of another form, whose cores share theirs or not, beside those it has."""
        if not self.transitions.take_version(group, shared=shared):
            return []
        return self.refresh(group, (), now, Urgency.BULK, pause_s=UNHURRIED_DRAIN_S, way=Way.BESIDE)

    def _end_if_empty(self, group: Group) -> None:
        """Forget a group without members and senders, but for what it may still have on switches."""
        if group.interests or group.senders:
            return
        if self.groups.pop(group.address, None):
            if group.vlan_id:
                self.vlan_groups[group.vlan_id] -= 1
            if self.ended is not None:
                self.ended(group.address)
        if group.unconfirmed is not None and not group.number:
            self._ended.remember(group)
