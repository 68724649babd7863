"""The ports that are measured: their samples' averages, CPUs, counts, and what follows for allocation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.allocation.busy import BusyTable, Rows
from controller.allocation.candidates import Candidates
from controller.allocation.families import FAMILIES, CpuSource
from controller.allocation.metric import Assessment, PortLoad, assess, port_metric, volume_load
from controller.allocation.parameters import averaging_period_s
from controller.config.settings import Allocation, PortParameters

STATE_VERSION = 1
NO_CPU = -1
NOT_AVAILABLE = "N/A"
"""Shown to people where a metric is not supported or not valid."""

_NAMES = tuple(FAMILIES)


class PortStateError(ValueError):
    """A stored state that cannot be taken; the text begins with the field at fault."""


class Metrics(NamedTuple):
    """Columns over the rows asked for, in percent; NaN where there is no valid value."""

    port_pct: NDArray[np.float64]
    cpu_pct: NDArray[np.float64]
    metric_pct: NDArray[np.float64]
    usage_pct: NDArray[np.float64]
    disqualified: NDArray[np.bool_]


class PortBook:
    """Ports of any families by name, each with the averages of its own and of its CPU's percent busy.

    Parameters
    ----------
    settings
        Parameters of the families, and how many ports there may be.
    poll_interval_s
        Samples that come sooner after the one before are no measurement; 0 where the interval is not known.

    Attributes
    ----------
    ports, cpus
        The averages; samples go into them by row.
    refused
        Ports that found no room.
    """

    def __init__(self, settings: Allocation, poll_interval_s: float = 0.0) -> None:
        self._settings = settings
        self._poll_interval_s = poll_interval_s
        self.refused = 0
        self._clear()

    def _clear(self) -> None:
        self.ports, self.cpus = BusyTable(self._poll_interval_s), BusyTable(self._poll_interval_s)
        self._rows: dict[str, int] = {}
        self._cpu_rows: dict[str, int] = {}
        self._family = np.empty(0, np.uint8)
        self._cpu = np.empty(0, np.int32)
        self._initiators, self._volumes = np.empty(0, np.int64), np.empty(0, np.int64)
        self._tabulate()

    def _tabulate(self) -> None:
        """Spread the parameters of the families into columns, what has no ceiling at infinity."""
        families = [self.parameters(name) for name in _NAMES]

        def column(value: Callable[[PortParameters], float | None]) -> NDArray[np.float64]:
            found = (value(parameters) for parameters in families)
            return np.array([np.inf if each is None else each for each in found], np.float64)

        self._port_floor = column(lambda family: family.port_utilization_floor)
        self._cpu_floor = column(lambda family: family.cpu_utilization_floor)
        self._coefficient = column(lambda family: family.metric_volume_coefficient)
        self._full_load = column(lambda family: family.volumes_at_full_load)
        self._ceilings = (
            column(lambda family: family.initiator_ceiling),
            column(lambda family: family.volume_ceiling),
            column(lambda family: family.port_utilization_ceiling),
            column(lambda family: family.cpu_utilization_ceiling),
        )
        self._has_cpu = np.array([family.cpu is not CpuSource.NONE for family in FAMILIES.values()])
        self._provisional_ms = np.array([family.provisional_s * 1000 for family in FAMILIES.values()])

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> list[str]:
        """The names of the ports, by row."""
        return list(self._rows)

    @property
    def cpu_names(self) -> list[str]:
        """The names of the CPUs, by row."""
        return list(self._cpu_rows)

    def row(self, name: str) -> int:
        """Return the row of a port; KeyError where it is not known."""
        return self._rows[name]

    def parameters(self, family: str) -> PortParameters:
        """Return the parameters of a family; KeyError where there is no such family."""
        if family not in FAMILIES:
            raise KeyError(family)
        found: PortParameters = getattr(self._settings, family)
        return found

    def add(self, name: str, family: str, cpu: str | None = None) -> int | None:
        """Return the row of a port, a new one where it has none; None where the book is full.

        Ports of one CPU name the same `cpu`. KeyError where the family is not known.
        """
        parameters = self.parameters(family)
        row = self._rows.get(name)
        if row is None:
            if len(self._rows) >= self._settings.ports:
                self.refused += 1
                return None
            row = self.ports.add(averaging_period_s(parameters), parameters.weight_for_exponential_moving_average)
            self._rows[name] = row
            if row == len(self._cpu):
                room = max(64, 2 * row)
                self._family, self._cpu = _longer(self._family, room), _longer(self._cpu, room)
                self._initiators, self._volumes = _longer(self._initiators, room), _longer(self._volumes, room)
            self._family[row] = _NAMES.index(family)
            self._cpu[row] = NO_CPU
        if cpu is not None:
            self._cpu[row] = self.add_cpu(cpu, family)
        return row

    def add_cpu(self, name: str, family: str) -> int:
        """Return the row of a CPU, a new one where it has none."""
        row = self._cpu_rows.get(name)
        if row is None:
            parameters = self.parameters(family)
            row = self.cpus.add(averaging_period_s(parameters), parameters.weight_for_exponential_moving_average)
            self._cpu_rows[name] = row
        return row

    def forget(self, names: Iterable[str]) -> None:
        """Drop ports, and CPUs that no port is left with; rows change, so look them up again."""
        state, gone = self.state(), set(names)
        state["ports"] = {name: port for name, port in state["ports"].items() if name not in gone}
        kept = {port["cpu"] for port in state["ports"].values()}
        state["cpus"] = {name: values for name, values in state["cpus"].items() if name in kept}
        self.restore(state)

    def configure(self, settings: Allocation) -> None:
        """Take other parameters; what was measured stays."""
        self._settings = settings
        self._tabulate()
        for row in range(len(self._rows)):
            parameters = self.parameters(_NAMES[self._family[row]])
            period_s, weight = averaging_period_s(parameters), parameters.weight_for_exponential_moving_average
            self.ports.configure(row, period_s, weight)
            if self._cpu[row] != NO_CPU:
                self.cpus.configure(int(self._cpu[row]), period_s, weight)

    def count(self, row: int, initiators: int, volumes: int) -> None:
        """Set how many initiators (hosts) and volumes (attachments) use a port."""
        self._initiators[row], self._volumes[row] = initiators, volumes

    def initiators(self, row: int) -> int:
        """Return how many initiators (hosts) use a port."""
        return int(self._initiators[row])

    def volumes(self, rows: Rows) -> NDArray[np.float64]:
        """Return how many volumes (attachments) use each of some ports."""
        return self._volumes[rows].astype(np.float64)

    def metrics(self, now_ms: int, rows: Rows | None = None) -> Metrics:
        """Return metric, usage and ceilings of ports, of all in the order of their rows where none are given."""
        if rows is None:
            rows = np.arange(len(self._rows))
        family = self._family[rows]
        stale_ms = self._settings.stale_s * 1000
        provisional_ms = self._provisional_ms[family]
        port = self.ports.values(rows, now_ms, stale_ms, provisional_ms)
        cpu_rows = self._cpu[rows]
        with_cpu = np.flatnonzero((cpu_rows != NO_CPU) & self._has_cpu[family] & ~np.isnan(port))
        cpu = np.full(len(rows), np.nan)
        used = cpu_rows[with_cpu].astype(np.intp)
        cpu[with_cpu] = self.cpus.values(used, now_ms, stale_ms, provisional_ms[with_cpu])
        metric = port_metric(port, cpu, self._port_floor[family], self._cpu_floor[family])
        metric[np.isnan(port)] = np.nan
        volumes = self._volumes[rows]
        usage = metric + volume_load(volumes, self._coefficient[family], self._full_load[family])
        over = np.zeros(len(rows), np.bool_)
        for value, ceiling in zip((self._initiators[rows], volumes, port, cpu), self._ceilings, strict=True):
            over |= value >= ceiling[family]
        return Metrics(port, cpu, metric, usage, over)

    def assess(self, name: str, now_ms: int) -> Assessment:
        """Return what follows for one port, with reasons; KeyError where it is not known."""
        row = self._rows[name]
        found = self.metrics(now_ms, np.array([row]))
        family = _NAMES[self._family[row]]
        port, cpu = (None if np.isnan(column[0]) else float(column[0]) for column in (found.port_pct, found.cpu_pct))
        load = PortLoad(FAMILIES[family], port, cpu, int(self._initiators[row]), int(self._volumes[row]))
        return assess(load, self.parameters(family))

    def reports(self, now_ms: int) -> dict[str, dict[str, float | int | bool | None]]:
        """Return the six reported fields of every port, under their published names.

        The metric is None, shown as ``N/A``, where it is not supported or not valid; percent busy is 0 there.
        """
        found = self.metrics(now_ms)
        return {name: self._report(found, row, row) for name, row in self._rows.items()}

    def report(self, name: str, now_ms: int) -> dict[str, float | int | bool | None]:
        """Return the six reported fields of one port; KeyError where it is not known."""
        row = self._rows[name]
        return self._report(self.metrics(now_ms, np.array([row])), 0, row)

    def _report(self, found: Metrics, entry: int, row: int) -> dict[str, float | int | bool | None]:
        return {
            "port_allocation_metric": _or(found.metric_pct[entry], None),
            "port_percent_busy": _or(found.port_pct[entry], 0.0),
            "cpu_percent_busy": _or(found.cpu_pct[entry], 0.0),
            "initiator_load": int(self._initiators[row]),
            "volume_load": int(self._volumes[row]),
            "allocation_disqualified": bool(found.disqualified[entry]),
        }

    def candidates(
        self,
        now_ms: int,
        levels: Sequence[str],
        components: Mapping[str, Mapping[str, str]],
        unconnected: frozenset[str] = frozenset(),
    ) -> Candidates:
        """Return the ports named in `components` that are under their ceilings, with their entities by level.

        KeyError where a port is not known.
        """
        rows = np.fromiter((self._rows[name] for name in components), np.intp, len(components))
        found = self.metrics(now_ms, rows)
        kept = np.flatnonzero(~found.disqualified)
        every = list(components)
        names = [every[index] for index in kept.tolist()]
        return Candidates(
            names,
            found.usage_pct[kept],
            self.volumes(rows[kept]),
            np.array([name not in unconnected for name in names], np.bool_),
            {level: [components[name].get(level) for name in names] for level in levels},
        )

    def state(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Return what was measured as plain values, for `restore`; of some ports and their CPUs where they are named.

        KeyError where a port is not known.
        """
        rows = self._rows if names is None else {name: self._rows[name] for name in names}
        cpu_rows, every = self._cpu_rows, list(self._cpu_rows)
        if names is not None:
            codes = {int(self._cpu[row]) for row in rows.values()} - {NO_CPU}
            cpu_rows = {every[code]: code for code in sorted(codes)}
        return {
            "version": STATE_VERSION,
            "cpus": {name: self.cpus.state(row) for name, row in cpu_rows.items()},
            "ports": {
                name: {
                    "family": _NAMES[self._family[row]],
                    "cpu": None if self._cpu[row] == NO_CPU else every[self._cpu[row]],
                    "initiators": int(self._initiators[row]),
                    "volumes": int(self._volumes[row]),
                    "metrics": self.ports.state(row),
                }
                for name, row in rows.items()
            },
        }

    def restore(self, state: Any) -> None:
        """Take a stored state in place of what was measured.

        Raises
        ------
        PortStateError
            The state is damaged, or has more ports than there may be; the book is empty then.
        """
        self._clear()
        try:
            self._restore(state)
        except PortStateError:
            self._clear()
            raise

    def _restore(self, state: Any) -> None:
        if not isinstance(state, dict) or state.get("version") != STATE_VERSION:
            raise PortStateError(f"version: expected {STATE_VERSION}")
        ports, cpus = (_object(state.get(name), name) for name in ("ports", "cpus"))
        for name, port in ports.items():
            where = f"ports.{name}"
            found = _object(port, where)
            family, cpu = found.get("family"), found.get("cpu")
            if not isinstance(family, str) or family not in FAMILIES:
                raise PortStateError(f"{where}.family: unknown family {family!r}")
            if cpu is not None and (not isinstance(cpu, str) or cpu not in cpus):
                raise PortStateError(f"{where}.cpu: {cpu!r} is not among the CPUs")
            row = self.add(name, family, cpu)
            if row is None:
                raise PortStateError(f"{where}: more than {self._settings.ports} ports")
            self.count(row, _whole(found, "initiators", where), _whole(found, "volumes", where))
            _restore_row(self.ports, row, found.get("metrics"), f"{where}.metrics")
        for name, values in cpus.items():
            cpu_row = self._cpu_rows.get(name)
            if cpu_row is None:
                raise PortStateError(f"cpus.{name}: no port has it")
            _restore_row(self.cpus, cpu_row, values, f"cpus.{name}")


def _restore_row(table: BusyTable, row: int, values: Any, where: str) -> None:
    try:
        table.restore(row, _object(values, where))
    except PortStateError:
        raise
    except ValueError as error:
        raise PortStateError(f"{where}.{error}") from None


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PortStateError(f"{where}: expected an object")
    return value


def _whole(found: Mapping[str, Any], name: str, where: str) -> int:
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise PortStateError(f"{where}.{name}: expected a whole number, found {value!r}")
    return value


def _longer(column: NDArray[Any], room: int) -> NDArray[Any]:
    longer = np.zeros(room, column.dtype)
    longer[: len(column)] = column
    return longer


def _or(value: float, other: float | None) -> float | None:
    return other if np.isnan(value) else float(value)
