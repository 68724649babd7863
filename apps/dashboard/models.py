"""The documents of the API as its description has them; a field that is not known is null or absent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from apps.dashboard.candidate_models import CandidateModel
from apps.dashboard.class_models import ClassModel, FlowTableModel, PortQueueModel
from apps.dashboard.cluster_models import ClusterMemberModel, MonitorModel, ScalingModel
from apps.dashboard.maintenance_models import MaintenanceModel
from apps.dashboard.model_parts import (
    Described,
    Dpid,
    FurtherTreeModel,
    Hexadecimal,
    Identified,
    Percent,
    PortNo,
    Rate,
    ReceiverVlanModel,
    Time,
    WrongTokensModel,
)
from apps.dashboard.pool_models import PoolAddressModel, PoolModel
from apps.dashboard.run_models import RunModel
from apps.dashboard.staged_models import StagedModel
from apps.dashboard.tenant_models import TenantConnectionModel, UnusedModel
from apps.dashboard.version_models import VersionModel


class ServerModel(Described):
    """What the server of the API tells of itself."""

    refused: dict[str, int] = Field(description="Requests refused, by reason.")
    connections: int
    streams: int
    wrong_tokens: WrongTokensModel
    writes: bool = Field(description="Whether a token of an operator is set, so that writes are possible.")
    reads_need_token: bool = Field(description="Whether reads need a token too, of a viewer or an operator.")
    workflows: bool = Field(False, description="Whether there is a folder of workflows to be begun.")


class StatusModel(Identified):
    """The state of controller and server."""

    connected: bool = Field(
        description="Whether the controller answers; where not, all else is as it was last known."
    )
    disconnected_reason: str | None = None
    dashboard: ServerModel
    ready: bool | None = Field(
        None, description="Whether every switch that was ever there is connected and holds what it should."
    )
    not_ready_reason: str | None = None
    in_sync: bool | None = Field(
        None, description="Whether the switches of the present fabric hold what they should."
    )
    switches: int | None = None
    fabrics: int | None = Field(default=None, description="Parts of the network that no link joins.")
    links: int | None = None
    edge_ports: int | None = None
    hosts: int | None = None
    groups: int | None = None
    static_members_waiting: int | None = None
    counters: dict[str, int] | None = None
    degraded: bool | None = Field(default=None, description="Whether a critical alarm is open, or fabric is missing.")
    degraded_because: str | None = None
    fabric: str | None = Field(default=None, description="What is there of what is expected.")
    expected_switches: int | None = None
    expected_links: int | None = None
    alarms: dict[str, int] | None = Field(
        default=None, description="Open alarms by severity, and those acknowledged."
    )
    framework: str | None = None
    started_s: Time = None
    apps: list[str] | None = None


class SwitchModel(Identified):
    """A switch."""

    name: str | None = None
    labels: dict[str, str] | None = None
    dpid: Dpid = None
    dpid_hex: Hexadecimal = None
    ofp_version: int | str | None = None
    encrypted: bool | None = Field(default=None, description="Whether it is spoken with by TLS.")
    tier: str | None = None
    level: int | None = None
    fabric: str | None = Field(default=None, description="The fabric that it is in.")
    connected: bool | None = None
    disconnected_s: Time = None
    in_sync: bool | None = None
    drained: bool | None = None
    up: bool | None = None
    answered_s: Time = None
    cpu_pct: Percent = None
    memory_pct: Percent = None


class FabricModel(Identified):
    """Switches that links join, and none of them to switches of another fabric."""

    fabric: str = Field(description="The name of the policy file, else what the switch with the lowest id is called.")
    switches: int = Field(ge=0)
    connected: int = Field(ge=0)
    in_sync: int = Field(ge=0)


class LinkModel(Identified):
    """A link between switches."""

    dpid_a: Dpid = None
    dpid_a_hex: Hexadecimal = None
    port_a: PortNo = None
    dpid_b: Dpid = None
    dpid_b_hex: Hexadecimal = None
    port_b: PortNo = None
    capacity_bps: Rate = None
    state: str | None = Field(default=None, description="`up`, `failed`, or `moved`: a port of it leads elsewhere.")
    since_s: Time = None


SetBy = Annotated[Literal["policy", "operator"] | None, Field(description="Who gives the port the group.")]
WaitingFor = Annotated[str | None, Field(description="What one that is not served waits for.")]


class StaticGroupModel(Described):
    """A group that a port is given whatever its hosts say."""

    group: str
    set_by: SetBy = None
    served: bool | None = None
    waiting_for: WaitingFor = None


class VlansModel(Described):
    """The VLANs of a port: `untagged` that of frames without a tag, 0 for the fabric's own domain, null for none."""

    untagged: int | None = None
    tagged: str | None = None
    names: dict[str, str] | None = None


class LegModel(Described):
    """A leg of a link aggregation group; one that does not work is down, or not in step by LACP."""

    dpid: int
    port_no: int
    works: bool | None = None


class LinkAggregationModel(Described):
    """The link aggregation group that a port is in."""

    name: str
    mode: str | None = None
    legs: list[LegModel] | None = None


class PortModel(Identified):
    """A port of a switch, with its rates, its metric and its score."""

    dpid: Dpid = None
    dpid_hex: Hexadecimal = None
    port_no: PortNo = None
    role: str | None = None
    name: str | None = None
    labels: dict[str, str] | None = None
    vlans: VlansModel | None = None
    link_aggregation: LinkAggregationModel | None = None
    static_members: list[StaticGroupModel] | None = None
    speed_bps: Rate = None
    rx_bps: Rate = None
    tx_bps: Rate = None
    rx_pps: Rate = None
    tx_pps: Rate = None
    rx_utilisation_pct: Percent = None
    tx_utilisation_pct: Percent = None
    rx_errors_pps: Rate = None
    tx_errors_pps: Rate = None
    rx_dropped_pps: Rate = None
    tx_dropped_pps: Rate = None
    sampled_s: Time = None
    port_metric: float | None = None
    usage: Any = None
    disqualified: Any = None
    score: float | None = None
    peer_group: str | None = None
    verdict: str | None = None


class HostModel(Identified):
    """A host; `vlan` is null in the fabric's own domain."""

    mac: str | None = None
    vlan: int | None = None
    dpid: Dpid = None
    dpid_hex: Hexadecimal = None
    port_no: PortNo = None
    ips: list[str] | None = None


class MemberModel(Described):
    """A member host of a group at a port."""

    dpid: int
    port_no: int
    mac: str | None = None
    ip: str | None = None
    mode: str | None = None
    sources: list[str] | None = None
    since_s: Time = Field(default=None, description="Since when it wants the group, as far as that is known.")
    rule: str | None = None
    reason: str | None = None


class SenderModel(Described):
    """A sender to a group at a port."""

    dpid: int
    port_no: int
    mac: str | None = None
    ip: str | None = None
    admitted: bool | None = None
    rule: str | None = None
    rate_bps: Rate = None
    since_s: Time = Field(default=None, description="Since when it is known to send.")
    service_class: str | None = None
    alias: int | None = None
    divided: bool | None = Field(default=None, description="Whether its flows take the trees of the group by parts.")
    dscp: int | None = None
    legs: list[dict[str, int]] | None = Field(default=None, description="The same by each leg of a link aggregation.")


class PortKeyModel(Described):
    """A port."""

    dpid: int
    port_no: int


class StaticMemberModel(PortKeyModel):
    """A port that is given a group whatever its hosts say."""

    set_by: SetBy = None
    served: bool | None = None
    waiting_for: WaitingFor = None


class GroupModel(Identified):
    """A group with its tree; `group` ends with `@` and the number of its VLAN where it is in one."""

    group: str | None = None
    vlan: int | None = None
    vlan_name: str | None = None
    source_vlan: int | None = None
    source_vlan_name: str | None = None
    receiver_vlans: list[ReceiverVlanModel] | None = None
    links: list[list[int]] | None = None
    detached: list[int] | None = None
    members: list[MemberModel] | None = None
    refused: list[MemberModel] | None = None
    senders: list[SenderModel] | None = None
    aliases: list[FurtherTreeModel] | None = None
    flow_parts: int | None = Field(default=None, description="Parts of divided flows that take its own tree.")
    out: bool | None = Field(default=None, description="Whether switches have no entries of it, to save room.")
    queue_packets: float | None = None
    utilisation_pct: float | None = None
    unsupported: str | None = None
    static_members: list[StaticMemberModel] | None = None
    size: int | None = None
    rate_bps: Rate = None


class GroupMemberModel(MemberModel):
    """A member, by the group."""

    id: str
    group: str
    role: Literal["receiver"]
    static: bool
    set_by: SetBy = None
    served: bool | None = None
    waiting_for: WaitingFor = None


class GroupSenderModel(SenderModel):
    """A sender, by the group."""

    id: str
    group: str
    role: Literal["sender"]


class RefusalModel(Described):
    """A member or sender that the policy or a limit refuses."""

    id: str
    group: str
    role: Literal["receiver", "sender"]
    dpid: int
    port_no: int
    mac: str | None = None
    ip: str | None = None


class RouterModel(Identified):
    """A port with a multicast router, or the queriers."""

    queriers: list[dict[str, Any]] | None = None
    dpid: Dpid = None
    dpid_hex: Hexadecimal = None
    port_no: PortNo = None
    family: int | None = None
    vlan: int | None = None
    static: bool | None = None
    on_request: bool | None = None
    routers: list[str] | None = None
    groups: list[str] | None = None
    reported: dict[str, Any] | None = None
    joined: dict[str, Any] | None = None


class RuleModel(Identified):
    """How often a rule of the policy allowed and denied."""

    rule: str | None = None
    allow: int | None = None
    deny: int | None = None
    since_s: Time = Field(default=None, description="Since when it is counted.")


class EventModel(Identified):
    """Something that happened, began or ended."""

    time_s: Time = None
    source: str | None = None
    kind: str | None = None
    severity: str | None = None
    state: str | None = None
    text: str | None = None
    dpid: Dpid = None
    dpid_hex: Hexadecimal = None
    port_no: PortNo = None
    group: str | None = None


class ConsequenceModel(Described):
    """Something that follows from an alarm's cause."""

    kind: str
    text: str
    dpid: Dpid = None
    port_no: PortNo = None


class AlarmFactsModel(Identified):
    """What is said of an alarm, be it open or over."""

    key: str | None = None
    kind: str | None = None
    subject: str | None = None
    severity: str | None = None
    state: str | None = None
    since_s: Time = None
    text: str | None = None
    dpid: Dpid = None
    port_no: PortNo = None
    dpid_a: Dpid = None
    port_a: PortNo = None
    dpid_b: Dpid = None
    port_b: PortNo = None
    occurrences: int | None = Field(default=None, description="How often it was raised, one time soon after another.")
    acknowledged_by: str | None = None
    acknowledged_s: Time = None


class AlarmModel(AlarmFactsModel):
    """Something that is wrong now, with what follows from it."""

    over_s: Time = Field(
        default=None, description="Since when its cause is gone; a flapping alarm stays for a while."
    )
    consequences: list[ConsequenceModel] | None = None
    consequence_count: int | None = None


class ClearedAlarmModel(AlarmFactsModel):
    """Something that was wrong and is over."""

    cleared_s: Time = None
    part_of: str | None = Field(default=None, description="Key of the alarm that it became part of.")


class AnomalyModel(Identified):
    """A member that behaves unlike its peers."""

    member: Any = None
    peer_group: Any = None
    metric: str | None = None
    since_s: Time = None
    score: float | None = None
    verdict: str | None = None
    rank: int | None = Field(default=None, description="What to look at first has 1.")
    other_end: str | None = Field(default=None, description="The other end of the cable, where it is told with it.")
    text: str | None = None


class AllocationModel(Identified):
    """A decision of the allocator, with its reasons."""

    time_s: Time = None
    request: Any = None
    ports: Any = None
    steps: list[dict[str, Any]] | None = None
    error: str | None = None


class PolicyFileModel(Identified):
    """The policy file that is in force, and what is wrong with a newer one."""

    path: str | None = None
    text: str | None = None
    loaded_s: Time = None
    errors: list[Any] | None = None


class PointModel(Described):
    """A value of a series, null where it is not known, perhaps with the bounds of what is normal then."""

    time_s: float
    value: float | None
    lower: float | None = None
    upper: float | None = None


class HistoryModel(Described):
    """A series of a port's rates."""

    dpid: int
    port_no: int
    metric: str
    step_s: float | None = None
    points: list[PointModel] | None = None


class DoneModel(Described):
    """What the controller answers to a change."""


class ProblemDocument(Described):
    """What was wrong with a request (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


DOCUMENTS: dict[str, type[Identified | GroupMemberModel | GroupSenderModel | RefusalModel]] = {
    "switches": SwitchModel,
    "fabrics": FabricModel,
    "links": LinkModel,
    "ports": PortModel,
    "hosts": HostModel,
    "groups": GroupModel,
    "members": GroupMemberModel,
    "senders": GroupSenderModel,
    "refusals": RefusalModel,
    "routers": RouterModel,
    "rules": RuleModel,
    "staged": StagedModel,
    "candidates": CandidateModel,
    "events": EventModel,
    "alarms": AlarmModel,
    "cleared-alarms": ClearedAlarmModel,
    "anomalies": AnomalyModel,
    "allocations": AllocationModel,
    "cluster": ClusterMemberModel,
    "monitors": MonitorModel,
    "scaling": ScalingModel,
    "classes": ClassModel,
    "queues": PortQueueModel,
    "tables": FlowTableModel,
    "versions": VersionModel,
    "connections": TenantConnectionModel,
    "unused": UnusedModel,
    "maintenance": MaintenanceModel,
    "pools": PoolModel,
    "addresses": PoolAddressModel,
    "runs": RunModel,
}
"""The form of the documents of each list."""
