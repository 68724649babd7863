"""The sections `classes`, `aliases` and `queues`: what they say, and what must hold between their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from controller.config.checks import idle
from controller.config.code_points import demotions
from controller.config.document import Mapping, Node, Scalar, Sequence
from controller.config.faults import Faults, quoted
from controller.config.marking import as_rule
from controller.config.policy import Tenant
from controller.config.read import NodeReader, line_of, scalar_value, step
from controller.config.service_class_settings import DYNAMIC, QUEUEING, Aliases, QueuePolicy
from controller.config.service_classes import DSCP_NAMES, MAX_DSCP, ServiceClass
from controller.config.terms import HostTerm, Prefix
from controller.service_classes.goals import DISCRETIONARY, GOAL_BOUNDS, MOST_IMPORTANT, Goal, GoalKind

MAX_CLASSES = 256
CLASS_KEYS = ("name", "importance", "groups", "hosts", "goal", "dscp", "aliases")
REQUIRED_CLASS_KEYS = ("name", "importance")
GOAL_KEYS = tuple(map(str, GoalKind))

T = TypeVar("T")


class Hosts(NamedTuple):
    """Hosts that a class names: any, those of tenants, and others."""

    any_host: bool
    tenants: tuple[str, ...]
    terms: tuple[HostTerm, ...]


class ClassReader:
    """Reads service classes; how groups, hosts and names are written is told by the reader of rules."""

    def __init__(
        self,
        reader: NodeReader,
        read_group: Callable[[Node, str], Prefix | None],
        read_hosts: Callable[[Node, str], Hosts],
        name_problem: Callable[[str], str],
    ) -> None:
        self._reader = reader
        self._faults = reader.faults
        self._read_group = read_group
        self._read_hosts = read_hosts
        self._name_problem = name_problem
        self._names: dict[str, int] = {}

    def read(self, node: Node, path: str) -> tuple[ServiceClass, ...]:
        """Return the classes of a list, in the order of the file."""
        if isinstance(node, Sequence) and len(node.items) > MAX_CLASSES:
            self._faults.error(node.line, path, f"{len(node.items)} classes; at most {MAX_CLASSES} are supported")
            return ()
        return tuple(self._reader.items(node, path, "a list of classes", self._class))

    def _class(self, node: Node, path: str) -> ServiceClass | None:
        what = "a mapping with name, importance, ..."
        found = self._reader.record(node, path, CLASS_KEYS, REQUIRED_CLASS_KEYS, what=what)
        if found is None:
            return None
        before = self._faults.error_count

        def read(name: str, reader: Callable[[Node, str], T | None]) -> T | None:
            return reader(found[name][1], f"{path}.{name}") if name in found else None

        name = read("name", self._name)
        importance = read(
            "importance", lambda child, own: self._reader.integer(child, own, MOST_IMPORTANT, DISCRETIONARY)
        )
        groups = read("groups", self._groups)
        hosts = read("hosts", self._read_hosts) or Hosts(False, (), ())
        goal = read("goal", self._goal)
        dscp = read("dscp", self._dscp)
        aliases = read("aliases", self._reader.boolean)
        if "groups" not in found and "hosts" not in found:
            self._faults.error(node.line, path, "neither groups nor hosts, so that nothing is in the class")
        if goal is not None and importance == DISCRETIONARY:
            message = f"a class of importance {DISCRETIONARY} is discretionary and has no goal"
            self._faults.error(found["goal"][0], f"{path}.goal", message)
        if self._faults.error_count > before or name is None or importance is None:
            return None
        has_aliases = aliases is not False
        return ServiceClass(
            name, importance, groups or (), *hosts, goal=goal, dscp=dscp, aliases=has_aliases, line=node.line
        )

    def _name(self, node: Node, path: str) -> str | None:
        name = self._reader.text(node, path, "a name (put it in quotes)")
        if name is None:
            return None
        problem = self._name_problem(name)
        if name in self._names:
            problem = f"{quoted(name)} is already the name of the class on line {self._names[name]}"
        self._names.setdefault(name, node.line)
        if problem:
            self._faults.error(node.line, path, problem)
        return name

    def _groups(self, node: Node, path: str) -> tuple[Prefix, ...]:
        if isinstance(node, Sequence) and not node.items:
            self._faults.error(node.line, path, "no groups, so that nothing is in the class")
        return tuple(self._reader.items(node, path, "a list of groups", self._read_group))

    def _goal(self, node: Node, path: str) -> Goal | None:
        found = self._reader.record(node, path, GOAL_KEYS, what=f"one of {', '.join(GOAL_KEYS)} with its value")
        if found is None:
            return None
        goals = []
        for key, (_, child) in found.items():
            value = self._reader.number(child, f"{path}.{key}", *GOAL_BOUNDS[GoalKind(key)])
            if value is not None:
                goals.append(Goal(GoalKind(key), value))
        if len(found) > 1:
            line = max(line for line, _ in found.values())
            self._faults.error(line, path, f"{len(found)} goals ({', '.join(found)}); a class has one")
            return None
        if isinstance(node, Mapping) and not node.pairs:
            self._faults.error(node.line, path, f"no goal; expected one of {', '.join(GOAL_KEYS)}")
        return goals[0] if goals else None

    def _dscp(self, node: Node, path: str) -> int | None:
        value = scalar_value(node) if isinstance(node, Scalar) else None
        if type(value) is int:
            return self._reader.integer(node, path, 0, MAX_DSCP)
        text = self._reader.text(node, path, f"a code point: 0 to {MAX_DSCP}, or a name such as ef")
        if text is None or text in DSCP_NAMES:
            return None if text is None else DSCP_NAMES[text]
        near = self._faults.suggestion(text, DSCP_NAMES)
        message = (
            f"unknown DSCP {quoted(text)}: expected 0 to {MAX_DSCP}, cs0 to cs7, af11 to af43, ef, va or le{near}"
        )
        self._faults.error(node.line, path, message)
        return None


def read_aliases(reader: NodeReader, node: Node, path: str) -> Aliases:
    """Return the settings of aliases, with a fault for static ones that are more than there may be."""
    aliases = reader.settings(Aliases, node, path)
    fault_line = line_of(node, "static")
    for entry in aliases.static:
        if entry.aliases > aliases.per_group:
            message = f"{entry.groups} has {entry.aliases} aliases; per_group allows {aliases.per_group}"
            line = line_of(node, "static", str(entry.groups))
            reader.faults.error(line, step(f"{path}.static", str(entry.groups)), message)
    total = sum(entry.aliases for entry in aliases.static)
    if total > aliases.pool:
        message = f"{total} static aliases; the pool holds {aliases.pool}"
        reader.faults.error(fault_line, f"{path}.static", message)
    if aliases.unicast and not aliases.has_flows:
        message = f"large flows to one host have no path of their own, since aliases.mode is not {DYNAMIC}"
        reader.faults.warn(line_of(node, "unicast"), f"{path}.unicast", message)
    return aliases


def read_queues(reader: NodeReader, node: Node, path: str) -> QueuePolicy:
    """Return the settings of queues, with a warning where nobody would set up those that packets are put into."""
    queues = reader.settings(QueuePolicy, node, path)
    if queues.mode in QUEUEING and not queues.ovsdb:
        message = (
            f"{queues.mode} without ovsdb: packets are put into queues that somebody else sets up at the switches"
        )
        reader.faults.warn(line_of(node, "mode"), f"{path}.mode", message)
    return queues


def check_classes(
    classes: Iterable[ServiceClass], tenants: Iterable[Tenant], queues: QueuePolicy, faults: Faults
) -> None:
    """Warn of classes that nothing is ever in, and of those that their code points do not tell from others."""
    classes = tuple(classes)
    for position, _, reason in idle([as_rule(each) for each in classes], tuple(tenants)):
        message = f"nothing is ever in class {quoted(classes[position].name)}: {reason}"
        faults.warn(classes[position].line, f"classes[{position}]", message)
    for demotion in demotions(classes) if queues.mode in QUEUEING else ():
        faults.warn(demotion.service_class.line, f"classes[{demotion.place}]", demotion.text())
