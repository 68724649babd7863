"""Accounted load of trees: what each direction of each link carries.

The direction u -> v carries the rates of the senders on u's side where a receiver is on v's side. While no
sender is on the tree, both directions of every link are accounted with the tree's `idle_bps`.
Only terminals on the tree count.
"""

from __future__ import annotations

from collections.abc import Callable

from controller.trees.tree import RECEIVES, ROLES, SENDS, Index, Route, Tree, TreeUses
from topology.graph import NodeId
from topology.loads import LinkLoads


def charge(tree: Tree, loads: LinkLoads) -> None:
    """Add the load of the whole tree, and count receivers and rates below each node anew."""
    tree.uses = None
    active = [(node, rate) for node, rate in tree.rates.items() if node in tree]
    if not active:
        tree.rate_below = tree.receivers_below = None
    else:
        rates = dict.fromkeys(tree.nodes(), 0)
        receivers = dict.fromkeys(rates, 0)
        rates.update(active)
        for node, role in tree.terminals.items():
            if int(role) & RECEIVES and node in receivers:
                receivers[node] = 1
        for node, above in reversed(tree.parent.items()):
            rates[above] += rates[node]
            receivers[above] += receivers[node]
        tree.rate_below, tree.receivers_below = rates, receivers
    _account(tree, loads, 1)


def discharge(tree: Tree, loads: LinkLoads) -> None:
    """Take away the load of the whole tree."""
    _account(tree, loads, -1)


def _account(tree: Tree, loads: LinkLoads, sign: int) -> None:
    rates, receivers = tree.rate_below, tree.receivers_below
    if rates is None or receivers is None:
        charge_links(tree, loads, sign * tree.idle_bps)
        return
    index, bps = index_of(tree, loads), loads.bps
    all_rates, all_receivers = rates[tree.root], receivers[tree.root]
    for node, above in tree.parent.items():
        number = index[node][above]
        if receivers[node] < all_receivers:
            bps[number] += sign * rates[node]
        if receivers[node]:
            bps[number ^ 1] += sign * (all_rates - rates[node])
    if tree.cables is not None:
        point(tree, loads)


def charge_links(tree: Tree, loads: LinkLoads, bps: int) -> None:
    """Add `bps` to both directions of all links of a tree."""
    index, table = index_of(tree, loads), loads.bps
    for u, v in tree.parent.items():
        number = index[u][v]
        table[number] += bps
        table[number ^ 1] += bps
    if tree.cables is not None:
        point(tree, loads)


def link_load(tree: Tree, node: NodeId) -> tuple[int, int]:
    """Return what a tree puts on the link from a node to its parent, and on the way back, in bit/s."""
    rates, receivers = tree.rate_below, tree.receivers_below
    if rates is None or receivers is None:
        return tree.idle_bps, tree.idle_bps
    up = rates[node] if receivers[node] < receivers[tree.root] else 0
    return up, rates[tree.root] - rates[node] if receivers[node] else 0


def carried(tree: Tree, loads: LinkLoads) -> dict[int, int]:
    """Return what a tree whose load is accounted puts on each directed link that has any of it, in bit/s."""
    index, found = index_of(tree, loads), {}
    for node, above in tree.parent.items():
        number = index[node][above]
        up, down = link_load(tree, node)
        if up:
            found[number] = up
        if down:
            found[number ^ 1] = down
    return found


def uses(tree: Tree, loads: LinkLoads) -> TreeUses | None:
    """Return the directed links that take all that one node sends over a tree whose load is accounted.

    They are kept with the tree, and receivers that come and go change them, until other nodes send. None where no
    node on the tree sends.
    """
    found = tree.uses
    if found is not None:
        return found
    rates, receivers = tree.rate_below, tree.receivers_below
    if rates is None or receivers is None:
        return None
    active = [node for node in tree.rates if node in rates]
    if len(active) > 1:
        found = tree.uses = TreeUses(None)
        return found
    index, way, everyone = index_of(tree, loads), set(_way_up(tree, active[0])), receivers[tree.root]
    numbers = set()
    for node, above in tree.parent.items():
        if node in way:
            if receivers[node] < everyone:
                numbers.add(index[node][above])
        elif receivers[node]:
            numbers.add(index[above][node])
    found = tree.uses = TreeUses(numbers)
    return found


def sent_bps(tree: Tree) -> int:
    """Return what all senders on a tree send, without one what is accounted in either direction of its links."""
    rates = tree.rate_below
    if rates is None:
        return tree.idle_bps
    return 0 if tree.root is None else rates[tree.root]


def index_of(tree: Tree, loads: LinkLoads) -> Index:
    """Return what has the number of each link of a tree, from either end."""
    return loads.index if tree.cables is None else tree.cables


def point(tree: Tree, loads: LinkLoads) -> None:
    """Have the loads name the least busy cable of each link of a tree, whose load is another."""
    for u, v in tree.parent.items():
        loads.point(u, v)


def path_of_sender(
    tree: Tree, node: NodeId, rate_bps: int, path: Callable[[Tree, NodeId], Route | None]
) -> Route | None:
    """Return the `path` by which a new sender is to join a tree, chosen with its rate, which no link has yet."""
    tree.rates[node] = rate_bps
    tree.rate_bps += rate_bps
    found = path(tree, node)
    del tree.rates[node]
    tree.rate_bps -= rate_bps
    return found


def _way_up(tree: Tree, node: NodeId) -> list[NodeId]:
    way, parent, root = [], tree.parent, tree.root
    while node != root:
        way.append(node)
        node = parent[node]
    return way


def receiver_moved(tree: Tree, loads: LinkLoads, node: NodeId, step: int) -> None:
    """Account a terminal on the tree that starts (`step` 1) or stops (-1) receiving, while the tree has senders.

    `tree.terminals` holds the terminal with its receiving role in both cases.
    """
    rates, receivers = tree.rate_below, tree.receivers_below
    if rates is None or receivers is None:
        return
    index = loads.index if tree.cables is None else tree.cables
    bps, parent, root, uses = loads.bps, tree.parent, tree.root, tree.uses
    all_rates, only = rates[root], step < 0
    if uses is not None and (uses.numbers is None or not all_rates):
        # Several send, or rates do not tell where the sender is.
        uses = tree.uses = None
    # What is sent below a node leaves it where a receiver is outside. This one makes the difference only where
    # all the others are inside, which means above any one of them; and everywhere where there are no others.
    others = receivers[root] - only
    if others:
        below = _other_receiver(tree, node)
        while below != root:
            if receivers[below] == others and rates[below] and below not in _way_up(tree, node):
                number = index[below][parent[below]]
                bps[number] += step * rates[below]
                if uses is not None:
                    uses.turn(number, step)
            below = parent[below]
    else:
        seen = set(_way_up(tree, node))
        for sender in tree.rates:
            if sender in rates:
                for below in _way_up(tree, sender):
                    if below in seen:
                        break
                    seen.add(below)
                    number = index[below][parent[below]]
                    bps[number] += step * rates[below]
                    if uses is not None:
                        uses.turn(number, step)
    below = node
    while below != root:
        above, count = parent[below], receivers[below]
        if count == only:
            number = index[above][below]
            bps[number] += step * (all_rates - rates[below])
            if uses is not None and not rates[below]:
                uses.turn(number, step)
        receivers[below] = count + step
        below = above
    receivers[root] += step
    if tree.cables is not None:
        point(tree, loads)


def _other_receiver(tree: Tree, node: NodeId) -> NodeId:
    for other, role in tree.terminals.items():
        if other != node and int(role) & RECEIVES and other in tree:
            return other
    raise ValueError(f"{node!r} is the only receiver")


def rate_moved(tree: Tree, loads: LinkLoads, node: NodeId, by_bps: int) -> None:
    """Account a change of the rate of a sending terminal on a tree that keeps at least one sender."""
    rates, receivers = tree.rate_below, tree.receivers_below
    if rates is None or receivers is None:
        return
    index, bps = index_of(tree, loads), loads.bps
    way = _way_up(tree, node)
    all_receivers = receivers[tree.root]
    for below in way:
        if receivers[below] < all_receivers:
            bps[index[below][tree.parent[below]]] += by_bps
        rates[below] += by_bps
    rates[tree.root] += by_bps
    on_way = set(way)
    for below, above in tree.parent.items():
        if receivers[below] and below not in on_way:
            bps[index[above][below]] += by_bps
    if tree.cables is not None:
        point(tree, loads)


def set_rate(tree: Tree, loads: LinkLoads, node: NodeId, rate_bps: int, is_accounted: bool = True) -> None:
    """Take the rate of a sending terminal; its load is left out where the tree's is not accounted now."""
    by_bps = rate_bps - tree.rates[node]
    tree.rates[node] = rate_bps
    tree.rate_bps += by_bps
    if by_bps and is_accounted and node in tree:
        rate_moved(tree, loads, node, by_bps)


def sender_known(tree: Tree, loads: LinkLoads, node: NodeId, rate_bps: int) -> None:
    """Take a sending terminal that had not sent, and account the whole tree anew."""
    if tree.root is not None:
        discharge(tree, loads)
    tree.rates[node] = rate_bps
    tree.rate_bps += rate_bps
    charge(tree, loads)


def begin_roles(tree: Tree, loads: LinkLoads, node: NodeId, new: int, rate_bps: int) -> None:
    """Account the roles that a terminal has from now on; a sender has `rate_bps` as long as it was not measured."""
    if new & RECEIVES and tree.rate_below is not None and node in tree:
        receiver_moved(tree, loads, node, 1)
    if new & SENDS:
        if tree.rate_below is not None and node in tree:
            tree.rates[node], tree.uses = 0, None
            set_rate(tree, loads, node, rate_bps)
        else:
            sender_known(tree, loads, node, rate_bps)


def end_roles(tree: Tree, loads: LinkLoads, node: NodeId, lost: int) -> None:
    """Account roles that a terminal, which still has them, is about to lose."""
    on_tree = node in tree
    if lost & RECEIVES and tree.rate_below is not None and on_tree:
        receiver_moved(tree, loads, node, -1)
    if lost & SENDS:
        if on_tree and sum(n in tree for n in tree.rates) > 1:
            set_rate(tree, loads, node, 0)
            del tree.rates[node]
            tree.uses = None
            return
        role = int(tree.terminals[node])
        if on_tree:
            discharge(tree, loads)
        tree.rate_bps -= tree.rates.pop(node)
        if on_tree:
            tree.terminals[node] = ROLES[role & ~lost]
            charge(tree, loads)
