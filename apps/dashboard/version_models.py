"""The documents of versions: what each switch is, and speaks."""

from __future__ import annotations

from pydantic import Field

from apps.dashboard.model_parts import Described, Dpid, Hexadecimal, Identified, PortNo


class VersionQuerierModel(Described):
    """Who asks for memberships in the fabric of the switch, in a domain, and in which version."""

    family: int = Field(description="4: IGMP, 6: MLD.")
    vlan: int | None = None
    ours: bool = Field(description="Whether that is this controller.")
    address: str | None = Field(default=None, description="That of another router; null: the controller, or nobody.")
    version: int | None = None


class OlderHostsModel(Described):
    """A port where hosts have reported in an older version, which is in force there for their groups."""

    port_no: PortNo = None
    vlan: int | None = None
    family: int | None = None
    version: int | None = None


class VersionModel(Identified):
    """The versions in force at a switch, and what it says of itself (OFPMP_DESC, OFPST_DESC)."""

    dpid: Dpid = None
    dpid_hex: Hexadecimal = None
    ofp_version: int | None = Field(default=None, description="As on the wire: 1 is OpenFlow 1.0, 4 is 1.3.")
    igmp_version: int | None = Field(
        default=None, description="In which version the querier asks, outside VLANs; null where nobody does."
    )
    mld_version: int | None = None
    queriers: list[VersionQuerierModel] | None = Field(
        default=None, description="Of the fabric's own domain, and of VLANs those that are not the controller."
    )
    older_hosts: list[OlderHostsModel] | None = None
    manufacturer: str | None = Field(default=None, description="Null until the switch has described itself.")
    hardware: str | None = None
    software: str | None = None
    serial: str | None = None
    datapath: str | None = Field(default=None, description="What the switch calls itself.")
