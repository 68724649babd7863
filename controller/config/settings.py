"""Every setting of the policy file, declared once: name, type, default, bounds, unit and meaning.

The reader, the defaults and the table in docs/policy.md all come from these declarations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from controller.config.alarm_settings import Alarms, ExpectedTopology
from controller.config.anomaly_settings import Anomaly
from controller.config.check_settings import Check
from controller.config.cluster_settings import Cluster
from controller.config.declarations import (
    Section,
    Setting,
    SettingType,
    declared,
    integer,
    number,
    optional_integer,
    optional_number,
    other,
    section,
)
from controller.config.edit_settings import Edits
from controller.config.maintenance_settings import Maintenance
from controller.config.multicast_settings import Proxy, Querier, RouterPorts
from controller.config.overcommit_settings import Overcommit
from controller.config.policy_discovery_settings import PolicyDiscovery
from controller.config.probe_settings import Probes
from controller.config.scaling_settings import ScalingSettings
from controller.config.service_class_settings import Aliases, QueuePolicy
from controller.config.terms import SEVERITIES, SwitchPort
from controller.trees.algorithms import ALGORITHMS

SWITCH_CLASSES = ("tor", "aggregation", "core", "switch")
"""What a switch may be; ``switch`` is one of which it is not known."""

WATCHED_COUNTERS = (
    *("rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_dropped", "tx_dropped", "rx_errors", "tx_errors"),
    *("rx_frame_err", "rx_over_err", "rx_crc_err", "collisions", "rx_utilisation", "tx_utilisation"),
)
REQUIRED_THRESHOLD_KEYS = ("counter",)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much state and work hosts may cause. What is over a limit is refused and counted."""

    groups_per_port: int = integer(64, 1, 65536, "groups", "Groups that the hosts at one port may be in together.")
    groups_per_host: int | None = optional_integer(
        1, 65536, "groups", "Groups that one host may be in; where absent, as many as its port."
    )
    link_groups_per_port: int = integer(
        256, 1, 65536, "groups", "The same for link-scope groups (solicited-node groups among them), counted apart."
    )
    hosts_per_port: int = integer(256, 1, 65536, "hosts", "Hosts that may be learnt, or be members, at one port.")
    addresses_per_host: int = integer(16, 1, 1024, "addresses", "IP addresses that one MAC address may have.")
    sources_per_group: int = integer(64, 1, 4096, "sources", "Sources that one port may name in one group.")
    senders_per_port: int = integer(64, 1, 65536, "senders", "Senders (host and group) that one port may have.")
    routers_per_port: int = integer(16, 1, 1024, "routers", "Multicast routers that are told apart at one port.")
    joins_per_port: int = integer(
        4096,
        1,
        65536,
        "joins",
        "PIM joins, and prunes of single sources, that are remembered at one port: of its routers, and of those that "
        "ask them.",
    )
    groups: int = integer(16384, 1, 1048576, "groups", "Groups that have a tree at one time.")
    memberships: int = integer(250000, 1, 10000000, "memberships", "Pairs of member host and group at one time.")
    reports_per_second_per_port: float = number(
        100, 0.1, 1e6, "1/s", "Membership reports that are read from one port; more are dropped unread."
    )
    reports_per_second_per_host: float | None = optional_number(
        0.1, 1e6, "1/s", "The same for one host, of those that its port has left; where absent, its port's."
    )
    records_per_second_per_port: float = number(
        500,
        0.1,
        1e6,
        "1/s",
        "Group records, and sources that they name, read from one port beyond one per report; reports above it are "
        "dropped unread.",
    )
    records_per_second_per_host: float | None = optional_number(
        0.1, 1e6, "1/s", "The same for one host, of those that its port has left; where absent, its port's."
    )
    unknown_packets_per_second_per_port: float = number(
        100, 0.1, 1e6, "1/s", "Packets of unknown senders and to unknown hosts that are read from one port."
    )


@dataclass(frozen=True, slots=True)
class Multicast:
    """How groups are carried."""

    tree: str = other(SettingType.CHOICE, "vsrt", "The algorithm that builds trees.", tuple(ALGORITHMS))
    seed: int = integer(1, 0, (1 << 63) - 1, "", "Decides every random choice; the same seed gives the same trees.")
    querier: Querier = section(Querier)  # noqa: RUF009 - it makes a field
    fast_leave: bool | frozenset[SwitchPort] = other(
        SettingType.BOOLEAN_OR_PORTS,
        False,
        "Ports where a leave takes effect without asking whether another member is there.",
    )
    router_ports: RouterPorts = section(RouterPorts)  # noqa: RUF009 - it makes a field
    proxy: Proxy = section(Proxy)  # noqa: RUF009 - it makes a field
    enforce_ssm: bool = other(
        SettingType.BOOLEAN,
        True,
        "Whether joins without a source are refused in 232.0.0.0/8 and ff3x::/32 (RFC 4607).",
    )
    default_rate_bps: float = number(1e6, 1, 1e13, "bit/s", "Rate that a group is taken to have until measured.")
    rebalance_interval_s: float = number(0, 0, 86400, "s", "Time between rebuilds of trees for load; 0 for none.")
    sender_timeout_s: float = number(260, 1, 86400, "s", "Time without packets after which a sender is forgotten.")


@dataclass(frozen=True, slots=True)
class Unicast:
    """How hosts reach each other beside multicast."""

    host_timeout_s: float = number(300, 10, 86400, "s", "Time without packets after which a host is forgotten.")


@dataclass(frozen=True, slots=True)
class Discovery:
    """How links between switches are found."""

    lldp_interval_s: float = number(
        2, 0.1, 300, "s", "Time between LLDP frames out of one port, where `idle_frames_per_s` allows."
    )
    missed_count: int = integer(
        3,
        1,
        100,
        "",
        "LLDP frames, sent at a fast pace after one was missed, that must be missed too for a link to be down.",
    )
    frames_per_s: float = number(
        2000,
        10,
        1e6,
        "1/s",
        "LLDP, echo, segment and tour frames together that leave in a second at most, whatever is new or suspect.",
    )
    idle_frames_per_s: float = number(
        500,
        1,
        1e6,
        "1/s",
        "Of these, what leaves where nothing is new or suspect. Too few to ask every port each `lldp_interval_s`: "
        "tours ask the links.",
    )
    switch_grace_s: float = number(
        10,
        0,
        3600,
        "s",
        "Time that a switch counts as there after its connection ended, while it forwards and a link leads to it.",
    )
    link_capacity_bps: float = number(
        0, 0, 1e13, "bit/s", "Capacity of links between switches; 0 takes the speed of their ports, else 1 Gbit/s."
    )


@dataclass(frozen=True, slots=True)
class Threshold:
    """When the rate of a counter is an event; what is absent is as the built-in rule has it."""

    counter: str = other(SettingType.CHOICE, "", "What is watched.", WATCHED_COUNTERS)
    switches: str = other(SettingType.CHOICE, "all", "The class of switches.", ("all", *SWITCH_CLASSES))
    raise_above: float | None = optional_number(0, 1e15, "1/s or %", "The event begins above this rate.")
    clear_below: float | None = optional_number(0, 1e15, "1/s or %", "It ends below this rate.")
    window_s: float | None = optional_number(0, 86400, "s", "Time constant of the rate's average.")
    hold_s: float | None = optional_number(0, 86400, "s", "How long the rate must be beyond its level.")
    severity: str = other(SettingType.CHOICE, "", "How grave it is.", SEVERITIES)


@dataclass(frozen=True, slots=True)
class ClassIntervals:
    """Intervals of polls by class of switch."""

    tor: int | None = optional_integer(
        1, 65535, "s", "Time between polls of a ToR; `monitor.interval_s` where absent."
    )
    aggregation: int | None = optional_integer(1, 65535, "s", "The same for aggregation switches.")
    core: int | None = optional_integer(1, 65535, "s", "The same for core switches.")
    switch: int | None = optional_integer(1, 65535, "s", "The same for switches of which the class is not known.")


@dataclass(frozen=True, slots=True)
class Statistics:
    """Which statistics are polled."""

    port: bool = other(SettingType.BOOLEAN, True, "Whether port statistics are polled.")
    queue: bool = other(SettingType.BOOLEAN, False, "Whether queue statistics are polled.")
    group: bool = other(SettingType.BOOLEAN, False, "Whether group statistics are polled (OpenFlow 1.3).")
    meter: bool = other(SettingType.BOOLEAN, False, "Whether meter statistics are polled (OpenFlow 1.3).")
    flow: bool = other(SettingType.BOOLEAN, False, "Whether flow statistics are polled.")
    table: bool = other(SettingType.BOOLEAN, False, "Whether table statistics are polled.")


@dataclass(frozen=True, slots=True)
class DeadbandSettings:
    """Which changes of data rates are significant, and so written to files."""

    relative_pct: float = number(5, 0, 1000, "%", "Change of a data rate that is written, beside the absolute one.")
    packets_per_s: float = number(1, 0, 1e12, "1/s", "Absolute part of it for packets.")
    bytes_per_s: float = number(128, 0, 1e12, "1/s", "Absolute part of it for octets.")
    silence_s: float = number(300, 1, 86400, "s", "Time after which a port is written whatever its rates are.")


@dataclass(frozen=True, slots=True)
class HistoryFiles:
    """Files of samples and rates, in `history` of the state directory."""

    enabled: bool = other(SettingType.BOOLEAN, True, "Whether samples and rates are written to Parquet files.")
    csv: bool = other(SettingType.BOOLEAN, False, "Whether they are written as CSV too.")
    max_age_s: float = number(1209600, 60, 1e9, "s", "Age at which an hour's files are removed.")
    max_bytes: int = integer(20 << 30, 1 << 20, 1 << 50, "bytes", "Size of all files at which the oldest hour goes.")
    part_interval_s: float = number(300, 1, 3600, "s", "Time after which a journal becomes a finished part.")


@dataclass(frozen=True, slots=True)
class RollUpFiles:
    """Files of roll-ups, beside the history."""

    enabled: bool = other(SettingType.BOOLEAN, True, "Whether roll-ups are written to Parquet files.")
    csv: bool = other(SettingType.BOOLEAN, False, "Whether they are written as CSV too.")
    max_age_s: float = number(34560000, 3600, 1e9, "s", "Age at which the files of an hour or day are removed.")
    max_bytes: int = integer(
        10 << 30, 1 << 20, 1 << 50, "bytes", "Size of all their files at which the oldest hour or day goes."
    )
    part_interval_s: float = number(3600, 1, 86400, "s", "Time after which a journal becomes a finished part.")


@dataclass(frozen=True, slots=True)
class PrometheusEndpoint:
    """The endpoint that Prometheus scrapes."""

    enabled: bool = other(SettingType.BOOLEAN, True, "Whether it is served.")
    address: bytes = other(SettingType.IPV4, b"\x7f\0\0\1", "Address to listen on.")
    port: int = integer(9471, 0, 65535, "", "TCP port to listen on; 0 takes any free one.")
    stale_s: float = number(300, 1, 86400, "s", "How long a port's last sample is shown.")


@dataclass(frozen=True, slots=True)
class SyslogOutput:
    """Where significant events go (RFC 5424)."""

    enabled: bool = other(SettingType.BOOLEAN, False, "Whether events are sent to syslog.")
    target: str = other(SettingType.TEXT, "/dev/log", "Unix socket, or host:port by UDP.")
    least: str = other(SettingType.CHOICE, "warning", "The least severity that is sent.", SEVERITIES)
    facility: int = integer(3, 0, 23, "", "Facility of the messages.")
    events_per_s: float = number(50, 0.1, 1e6, "1/s", "Most messages in a second; more are counted.")


@dataclass(frozen=True, slots=True)
class EventLog:
    """The JSON log of events, `events.jsonl` of the state directory."""

    enabled: bool = other(SettingType.BOOLEAN, True, "Whether events are written to it.")
    max_bytes: int = integer(16 << 20, 4096, 1 << 40, "bytes", "Size at which the next file is begun.")
    files: int = integer(4, 1, 1000, "files", "Files that are kept.")


@dataclass(frozen=True, slots=True)
class Monitor:
    """How switches are polled, and where what they answer goes."""

    interval_s: int = integer(10, 1, 65535, "s", "Time between two polls of a switch.")
    intervals: ClassIntervals = section(ClassIntervals)  # noqa: RUF009 - it makes a field
    statistics: Statistics = section(Statistics)  # noqa: RUF009 - it makes a field
    outstanding: int = integer(64, 1, 65536, "requests", "Requests that may wait for an answer at once.")
    timeout_s: float = number(2, 0.1, 300, "s", "Silence after which a request is given up.")
    role: str = other(
        SettingType.CHOICE,
        "unchanged",
        "Role that is asked of OpenFlow 1.3 switches; one beside another controller is `equal` or `slave`.",
        ("unchanged", "equal", "slave"),
    )
    share: str = other(
        SettingType.CHOICE,
        "none",
        "Which switches are polled: all, or with `cluster` this monitor's share, as the monitors of the fabric "
        "divide them by the store that the section `cluster` names.",
        ("none", "cluster"),
    )
    ports: int = integer(262144, 1, 4194304, "ports", "Ports that are watched at one time.")
    port_capacity_bps: float = number(
        0, 0, 1e13, "bit/s", "Capacity of ports that utilisation is taken of; 0 takes the speed that switches tell."
    )
    sticky_bits: str = other(
        SettingType.CHOICE, "none", "Width of counters that stick at their maximum.", ("none", "32", "64")
    )
    feed_trees: bool = other(
        SettingType.BOOLEAN, True, "Whether the load seen on links counts where multicast trees are placed."
    )
    ovsdb: str = other(
        SettingType.TEXT,
        "",
        "OVSDB server (`unix:PATH` or `tcp:HOST:PORT`) that is asked for CPU and memory of switches, and followed by"
        " recorders of changes; empty for none.",
    )
    thresholds: tuple[Threshold, ...] = other(
        SettingType.THRESHOLDS, (), "What is raised beside, or in place of, the built-in thresholds."
    )
    deadband: DeadbandSettings = section(DeadbandSettings)  # noqa: RUF009 - it makes a field
    history: HistoryFiles = section(HistoryFiles)  # noqa: RUF009 - it makes a field
    roll_ups: RollUpFiles = section(RollUpFiles)  # noqa: RUF009 - it makes a field
    prometheus: PrometheusEndpoint = section(PrometheusEndpoint)  # noqa: RUF009 - it makes a field
    syslog: SyslogOutput = section(SyslogOutput)  # noqa: RUF009 - it makes a field
    event_log: EventLog = section(EventLog)  # noqa: RUF009 - it makes a field

    def longest_interval_s(self) -> float:
        """Return the longest time between two polls of a switch."""
        of_class = (getattr(self.intervals, entry.name) for entry in fields(self.intervals))
        return float(max(self.interval_s, *(interval_s or 0 for interval_s in of_class)))


MINUTES_ABOVE = 10_000
"""From here on `days_to_average_utilization` counts minutes: 10060 is an hour."""

MOST_DAYS = 30


@dataclass(frozen=True, slots=True)
class PortParameters:
    """What makes the metric of ports of one family, and what disqualifies them."""

    initiator_ceiling: int | None = optional_integer(
        1,
        (1 << 63) - 1,
        "initiators",
        "Initiators (hosts) from which on a port is not allocated; no ceiling if absent.",
    )
    volume_ceiling: int | None = optional_integer(
        1,
        (1 << 63) - 1,
        "volumes",
        "Volumes (attachments) from which on a port is not allocated; no ceiling if absent.",
    )
    port_utilization_ceiling: float = number(
        100, 0, 100, "%", "Port percent busy from which on a port is not allocated."
    )
    cpu_utilization_ceiling: float = number(
        100, 0, 100, "%", "Percent busy of the port's CPU from which on it is not allocated."
    )
    days_to_average_utilization: int = integer(
        1,
        1,
        (1 << 31) - 1,
        "days",
        "Time over which samples are averaged: 1 to 30 days; a value above 10000 means the minutes above it.",
    )
    weight_for_exponential_moving_average: float = number(
        0.6, 0, 1, "", "Weight of the latest average beside those before it."
    )
    port_utilization_floor: float = number(3, 0, 100, "%", "Port percent busy below which it counts as 0.")
    cpu_utilization_floor: float = number(8, 0, 100, "%", "CPU percent busy below which it does not count.")
    metric_volume_coefficient: float = number(1, 0, 5, "", "Weight of the number of volumes in a port's usage.")
    volumes_at_full_load: int = integer(2048, 1, 1 << 40, "volumes", "Volumes that count as 100 % of volume load.")


@dataclass(frozen=True, slots=True)
class SwitchPortParameters(PortParameters):
    """The same of switch ports, whose load an hour tells."""

    days_to_average_utilization: int = integer(
        MINUTES_ABOVE + 60,
        1,
        (1 << 31) - 1,
        "days",
        "Time over which samples are averaged: 1 to 30 days; a value above 10000 means the minutes above it.",
    )


@dataclass(frozen=True, slots=True)
class Allocation:
    """How ports are measured and allocated, by family of device."""

    vmax: PortParameters = section(PortParameters)  # noqa: RUF009 - it makes a field
    vnx: PortParameters = section(PortParameters)  # noqa: RUF009 - it makes a field
    hds: PortParameters = section(PortParameters)  # noqa: RUF009 - it makes a field
    vplex: PortParameters = section(PortParameters)  # noqa: RUF009 - it makes a field
    openflow: PortParameters = section(SwitchPortParameters)  # noqa: RUF009 - it makes a field
    stale_s: float = number(172800, 60, 1e9, "s", "Time without a sample after which a metric is not valid.")
    penalty_factor: float = number(
        1.5, 0, 100, "", "What a placement counts until it is measured, as a multiple of its steady-state size."
    )
    proposal_s: float = number(
        3600, 1, 1e9, "s", "Time for which a proposed port counts as attached, while nobody is seen to use it."
    )
    ports: int = integer(262144, 1, 4194304, "ports", "Ports that are measured at one time.")
    trees: bool = other(
        SettingType.BOOLEAN,
        False,
        "Whether the port metric counts as load where multicast trees are placed, in place of what the monitor saw.",
    )
    paths: bool = other(
        SettingType.BOOLEAN,
        False,
        "Whether unicast takes paths of equal length the less often the higher the metric of the ports to them is.",
    )


@dataclass(frozen=True, slots=True)
class Dashboard:
    """Where the operator's page and API are served, and who may read and write; empty paths stand for none."""

    host: bytes = other(SettingType.IP, b"\x7f\0\0\1", "Address to listen on.")
    port: int = integer(8181, 0, 65535, "", "TCP port to listen on; 0 takes any free one.")
    token_file: str = other(
        SettingType.TEXT,
        "",
        "File with the tokens of operators, who read and write, readable by the controller's user alone; without it "
        "nobody may write.",
    )
    read_token_file: str = other(
        SettingType.TEXT,
        "",
        "File with the tokens of viewers, who read only. With it every read of the API needs a token, without it "
        "none does.",
    )
    tokens_over_plain_http: str = other(
        SettingType.CHOICE,
        "refused",
        "Whether the server starts where tokens would cross a network in clear: `host` is not a loopback address and "
        "there is no certificate.",
        ("refused", "accepted"),
    )
    certificate: str = other(SettingType.TEXT, "", "Certificate chain (PEM) for TLS; plain HTTP where absent.")
    key: str = other(
        SettingType.TEXT, "", "The certificate's private key (PEM, no passphrase), not readable by others."
    )
    names: str = other(
        SettingType.TEXT, "", "Host names besides `localhost` by which browsers may ask, with spaces between."
    )
    workflows: str = other(
        SettingType.TEXT,
        "",
        "Folder with workflows (`*.yaml`) that the page offers at what they are about; without it none are.",
    )


SETTING_SECTIONS: dict[str, type[Any]] = {
    "limits": Limits,
    "multicast": Multicast,
    "unicast": Unicast,
    "discovery": Discovery,
    "edits": Edits,
    "check": Check,
    "monitor": Monitor,
    "allocation": Allocation,
    "anomaly": Anomaly,
    "dashboard": Dashboard,
    "alarms": Alarms,
    "topology": ExpectedTopology,
    "cluster": Cluster,
    "aliases": Aliases,
    "queues": QueuePolicy,
    "probes": Probes,
    "policy_discovery": PolicyDiscovery,
    "overcommit": Overcommit,
    "maintenance": Maintenance,
    "scaling": ScalingSettings,
}


def all_settings() -> Iterator[tuple[str, Setting]]:
    """Yield every setting with its full name, such as ``multicast.querier.robustness``."""

    def walk(path: str, type_: type[Any]) -> Iterator[tuple[str, Setting]]:
        for name, entry in declared(type_).items():
            if isinstance(entry, Section):
                yield from walk(f"{path}.{name}", entry.type)
            else:
                yield f"{path}.{name}", entry

    for name, type_ in SETTING_SECTIONS.items():
        yield from walk(name, type_)
