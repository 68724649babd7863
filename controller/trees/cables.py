"""Which cable each link of a tree takes, where several join the same switches.

A tree takes the one that is least busy when it takes the link, keeps it as long as it is there, and moves to the one
that is least busy then when it fails. A tree of which no link has several cables has no choice to remember.
"""

from __future__ import annotations

from collections.abc import Mapping

from controller.trees.tree import Index, Links, Tree
from topology.graph import Link, NodeId
from topology.loads import LinkLoads


def note(tree: Tree, loads: LinkLoads) -> None:
    """Have a tree remember its cables, of which none has others beside it now."""
    if tree.cables is None:
        tree.cables = {}
        _note(tree.cables, tuple(tree.links()), loads)


def took(tree: Tree, added: Links, loads: LinkLoads) -> None:
    """Choose cables for links that were added to a tree."""
    if tree.cables is not None:
        _note(tree.cables, added, loads)
    elif any(u in loads.bundles and v in loads.bundles[u] for u, v in added):
        note(tree, loads)


def gave(tree: Tree, removed: Links, loads: LinkLoads) -> tuple[Link, ...]:
    """Forget the cables of links that were removed from a tree; return those that had others beside them."""
    left = []
    own = tree.cables or {}
    for u, v in removed:
        number = own[u].pop(v)
        del own[v][u]
        for node in (u, v):
            if not own[node]:
                del own[node]
        if _is_told_apart(u, v, number, loads):
            left.append(loads.links[number])
            loads.point(u, v)
    return tuple(left)


def chosen(
    tree: Tree, added: Links, removed: Links, named: Mapping[NodeId, Mapping[NodeId, int]] | None, loads: LinkLoads
) -> tuple[Link, ...]:
    """Choose the cables of a tree that became another.

    Parameters
    ----------
    tree
        The tree with its links as they are now and its cables as they were, not accounted.
    added, removed
        Links that it has and had not, and the other way round.
    named
        Numbers of cables to take where they are there, in place of those that it had.

    Returns
    -------
    tuple
        The cables that it left, of those that have or had others beside them.
    """
    had = tree.cables
    now: Index = {}
    is_any = False
    for u, v in tree.links():
        number = _named(u, v, had if named is None else named, loads)
        now.setdefault(u, {})[v] = number
        now.setdefault(v, {})[u] = number ^ 1
        is_any = is_any or (u in loads.bundles and v in loads.bundles[u])
    left = []
    for u, v in removed if had is not None else ():
        if _is_told_apart(u, v, had[u][v], loads):  # type: ignore[index]
            left.append(loads.links[had[u][v]])  # type: ignore[index]
    fresh = set(added)
    for u, v in tree.links():
        before = loads.index[u][v] if had is None or (u, v) in fresh else had[u][v]
        if (u, v) not in fresh and before != now[u][v]:
            left.append(loads.links[before])
    tree.cables = now if is_any else None
    return tuple(left)


def gone(tree: Tree, left: tuple[Link, ...], loads: LinkLoads) -> tuple[Link, ...]:
    """Return those of some cables that a tree does not have."""
    own = tree.cables or loads.index
    return tuple(
        cable
        for cable in left
        if not tree.has_link(cable.u, cable.v) or loads.links[own[cable.u][cable.v]].ports != cable.ports
    )


def named(ports: Mapping[tuple[NodeId, NodeId], tuple[int, int]], loads: LinkLoads) -> Index | None:
    """Return the numbers of cables by their ends and ports, None where none of them is there."""
    found: Index = {}
    for (u, v), (u_port, v_port) in ports.items():
        number = loads.number(u, v, u_port, v_port)
        if number is not None:
            found.setdefault(u, {})[v] = number
            found.setdefault(v, {})[u] = number ^ 1
    return found or None


def told_apart(tree: Tree, loads: LinkLoads) -> dict[tuple[NodeId, NodeId], Link]:
    """Return the cables, by their links, that a tree has of those that have others beside them."""
    if tree.cables is None:
        return {}
    return {
        (u, v): loads.links[tree.cables[u][v]]
        for u, v in tree.links()
        if u in loads.bundles and v in loads.bundles[u]
    }


def _note(own: Index, links: Links, loads: LinkLoads) -> None:
    for u, v in links:
        number = loads.index[u][v]
        own.setdefault(u, {})[v] = number
        own.setdefault(v, {})[u] = number ^ 1


def _named(u: NodeId, v: NodeId, names: Mapping[NodeId, Mapping[NodeId, int]] | None, loads: LinkLoads) -> int:
    """Return the cable that is named for a link, or the least busy one where that is none of its cables."""
    if names is not None and u in names and v in names[u] and names[u][v] in loads.cables(u, v):
        return names[u][v]
    return loads.index[u][v]


def _is_told_apart(u: NodeId, v: NodeId, number: int, loads: LinkLoads) -> bool:
    """Tell whether there are cables between two switches beside one, or others where it was."""
    if u in loads.bundles and v in loads.bundles[u]:
        return True
    return v in loads.index.get(u, ()) and loads.index[u][v] != number
