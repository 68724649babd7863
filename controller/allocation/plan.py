"""One request over several networks and hosts: ports per network, and which initiator uses which port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from controller.allocation.candidates import Candidates, Mode, PortId
from controller.allocation.selection import Affinity, Carried, PortSelection, Wish, select


class Initiator(NamedTuple):
    """A host's own port, in a network."""

    name: str
    network: str


class Requester(NamedTuple):
    """Who asks for paths."""

    name: str
    initiators: Sequence[Initiator]


@dataclass(frozen=True, slots=True)
class PathRules:
    """How many paths a host gets, and at most how many of them one of its initiators."""

    max_paths: int
    min_paths: int = 1
    per_initiator: int = 1


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds in every network of a request: entities used earlier, by itself and by others, a preference, and the
    mode."""

    carried: Carried = field(default_factory=Carried)
    lately: Carried = field(default_factory=Carried)
    affinity: Affinity | None = None
    mode: Mode = Mode.DEFAULT


class CandidateNetwork(NamedTuple):
    """The candidates of a network, and the ports that were allocated there before."""

    candidates: Candidates
    previously_allocated: Sequence[PortId] = ()


class Path(NamedTuple):
    """An initiator that uses a port."""

    host: str
    initiator: str
    port: PortId


class PathPlan(NamedTuple):
    """The ports of each network, the paths over them, and what the next request should know."""

    networks: dict[str, PortSelection]
    paths: tuple[Path, ...]
    carried: Carried


class TooFewPathsError(Exception):
    """A host gets fewer paths than it must have."""

    def __init__(self, host: str, wanted: int, found: int) -> None:
        super().__init__(f"host {host}: {wanted} paths needed, {found} found")
        self.host, self.wanted, self.found = host, wanted, found


def paths_per_network(host: Requester, networks: Sequence[str], rules: PathRules) -> dict[str, int]:
    """Return how many paths of a host each network gets: one after another, as its initiators there can take them."""
    here = Counter(initiator.network for initiator in host.initiators)
    room = {name: here[name] * rules.per_initiator for name in networks}
    shares = dict.fromkeys(networks, 0)
    left = rules.max_paths
    while left and any(shares[name] < room[name] for name in networks):
        for name in networks:
            if left and shares[name] < room[name]:
                shares[name] += 1
                left -= 1
    return shares


def plan(
    networks: Mapping[str, CandidateNetwork], hosts: Sequence[Requester], rules: PathRules, terms: Terms | None = None
) -> PathPlan:
    """Return ports and paths for hosts.

    Parameters
    ----------
    networks
        In the order in which they are served.
    hosts
        Initiators whose network is not among `networks` get no path.
    rules
        Paths per host.
    terms
        Those of a selection; the budget of an affinity holds in each network.

    Returns
    -------
    PathPlan
        Each network gets as many ports as the host with most paths there needs; entities used in one network are
        avoided in the next. Of a host's paths in a network each goes to the initiator with fewest paths and the port
        that the host, then all hosts, use least.

    Raises
    ------
    TooFewPathsError
        A host gets fewer than `min_paths`.
    """
    terms = terms or Terms()
    carried, lately = terms.carried, terms.lately
    shares = {host.name: paths_per_network(host, list(networks), rules) for host in hosts}
    selections: dict[str, PortSelection] = {}
    paths: list[Path] = []
    for name, network in networks.items():
        count = max((share[name] for share in shares.values()), default=0)
        wish = Wish(count, True, network.previously_allocated, carried, lately, terms.affinity, terms.mode)
        selection = select(network.candidates, wish)
        selections[name] = selection
        carried, lately = selection.carried, selection.lately
        load: Counter[PortId] = Counter()
        for host in hosts:
            initiators = [initiator.name for initiator in host.initiators if initiator.network == name]
            paths += _assign(host.name, initiators, selection.ports, shares[host.name][name], load)
    found = Counter(path.host for path in paths)
    for host in hosts:
        if found[host.name] < rules.min_paths:
            raise TooFewPathsError(host.name, rules.min_paths, found[host.name])
    return PathPlan(selections, tuple(paths), carried)


def _assign(
    host: str, initiators: Sequence[str], ports: Sequence[PortId], count: int, load: Counter[PortId]
) -> list[Path]:
    """Return `count` paths, fewer where every pair is taken; `load` counts the paths at each port over all hosts."""
    paths: list[Path] = []
    mine: Counter[PortId] = Counter()
    taken: dict[str, set[PortId]] = {initiator: set() for initiator in initiators}
    while len(paths) < count:
        open_ = [initiator for initiator in initiators if len(taken[initiator]) < len(ports)]
        if not open_:
            break
        initiator = min(open_, key=lambda name: len(taken[name]))
        free = [port for port in ports if port not in taken[initiator]]
        port = min(free, key=lambda name: (mine[name], load[name]))
        taken[initiator].add(port)
        mine[port] += 1
        load[port] += 1
        paths.append(Path(host, initiator, port))
    return paths
