"""The JSON Schema of the policy file, made of the declarations that its reader checks by."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from inspect import getdoc
from typing import Any, TypeAlias

from controller.config.anomaly_settings import PEER_GROUPS, PeerWindows
from controller.config.declarations import Section, Setting, SettingType, declared
from controller.config.fabrics import MAX_FABRICS, MAX_SWITCHES
from controller.config.labels import MAX_LABELLED, MAX_LABELS
from controller.config.link_aggregations import ENTRY_KEYS as AGGREGATION_KEYS
from controller.config.link_aggregations import MAX_LEGS, MAX_LINK_AGGREGATIONS, MODES
from controller.config.load import (
    MAX_NAME_LENGTH,
    MAX_NAMED_SWITCHES,
    MAX_RULES,
    MAX_TENANTS,
    REQUIRED_RULE_KEYS,
    RULE_KEYS,
    SECTIONS,
)
from controller.config.overcommit_settings import MOST_ENTRIES, TableShare
from controller.config.policy import ACTIONS, ANY_HOST, DEFAULT_RULE, ROLES, VERSION, Role
from controller.config.read_classes import CLASS_KEYS, MAX_CLASSES, REQUIRED_CLASS_KEYS
from controller.config.read_pools import pools_schema
from controller.config.read_registrations import ENTRY_KEYS as REGISTRATION_KEYS
from controller.config.read_registrations import MAX_REGISTRATIONS
from controller.config.read_vlans import MAX_VLAN_ENTRIES, SECTION_KEYS, TIERS
from controller.config.service_classes import DSCP_NAMES, MAX_DSCP
from controller.config.settings import REQUIRED_THRESHOLD_KEYS, SETTING_SECTIONS, Threshold
from controller.config.static_members import ENTRY_KEYS, MAX_STATIC_MEMBERS
from controller.config.terms import LABEL_KEY, LABEL_VALUE, MAX_PORT_NO, PORT_NAME, RESERVED_LABELS, SWITCH_NAME
from controller.config.vlans import ALL, MAX_VLAN_ID, PASS, REFUSE, RESERVED_NAMES, UNTAGGED, VLAN_NAME
from controller.service_classes.goals import DISCRETIONARY, GOAL_BOUNDS, MOST_IMPORTANT
from controller.service_classes.pool import MAX_ALIASES
from controller.wire.addresses import format_ip
from controller.wire.dpids import MAX_DPID

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema: TypeAlias = dict[str, Any]

_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(\.{_OCTET}){{3}}"
_IPV4_GROUP = rf"(22[4-9]|23[0-9])(\.{_OCTET}){{3}}"
_IPV4_LENGTH = "(/(0{0,2}[0-9]|0?[12][0-9]|0?3[0-2]))?"
_IPV6_REST = "[0-9a-fA-F:.]*"
_IPV6 = f"[0-9a-fA-F]{{0,4}}:{_IPV6_REST}:{_IPV6_REST}"
_IPV6_GROUP = f"[fF]{{2}}[0-9a-fA-F]{{2}}:{_IPV6_REST}:{_IPV6_REST}"
_IPV6_LINK_LOCAL = f"[fF][eE]80:{_IPV6_REST}:{_IPV6_REST}"
_IPV6_LENGTH = "(/(0{0,2}[0-9]|0?[0-9]{2}|1[01][0-9]|12[0-8]))?"
_HOST_MAC = "[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}"
_DPID = r"^(0[xX][0-9a-fA-F]{1,16}|[0-9a-fA-F]{16}|[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){7}|[0-9]{1,20})$"
_LABELLED = f"^({SWITCH_NAME}|[0-9a-fA-F]{{2}}(:[0-9a-fA-F]{{2}}){{7}})(:(0x[0-9a-fA-F]{{1,8}}|[1-9][0-9]{{0,9}}))?$"
_VLAN_ID = "([1-9][0-9]{0,2}|[1-3][0-9]{3}|40[0-8][0-9]|409[0-4])"
_NAME = r"^\S(.*\S)?$"
_NO_ADDRESS = r"^(?![0-9.]*$)[^:/]*$"


def policy_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of the policy file.

    Every file that `controller.config.load_policy` takes is valid by it, once YAML has been read by the core schema
    of YAML 1.2 and addresses stand in quotes where YAML would read them as numbers. What a schema cannot say is left
    to the reader: host bits, unknown tenants, names used twice, a MAC address in two tenants, what is in files that
    it names, and relations between two settings.
    """
    vlan_section: Schema = {
        "names": {
            "description": "What VLANs are called.",
            "type": "object",
            "propertyNames": {"pattern": f"^({_VLAN_ID}|0x[0-9a-fA-F]{{1,4}})$"},
            "additionalProperties": _definition("vlan_name"),
        },
        "default": {
            "description": "What is said of ports of which no entry speaks; where absent, they are in no VLAN.",
            "anyOf": [_mapping(said, (required,)) for required, said in _port_vlans().items()],
        },
        "ports": {
            "description": "What is said of ports; the most specific entry decides.",
            "maxItems": MAX_VLAN_ENTRIES,
        }
        | _list(_definition("vlan_entry")),
        "double_tagged": {
            "description": "What is done with frames that have a second tag behind that of a VLAN.",
            "enum": [REFUSE, PASS],
            "default": REFUSE,
        },
        "mvr": {
            "description": "Multicast VLAN registration: groups that VLANs are given from another.",
            "maxItems": MAX_REGISTRATIONS,
        }
        | _list(_definition("registration")),
    }
    sections: Schema = {name: _reference(type_) for name, type_ in SETTING_SECTIONS.items()}
    sections |= {
        "version": {"description": "Version of the format.", "type": "integer", "const": VERSION},
        "switches": {
            "description": "What operators call switches and ports: names of switches to their datapath ids.",
            "type": "object",
            "maxProperties": MAX_NAMED_SWITCHES,
            "propertyNames": {"pattern": f"^{SWITCH_NAME}$", "not": {"pattern": _DPID}},
            "additionalProperties": _definition("named_switch"),
        },
        "tenants": {
            "description": "Names of tenants to lists of their hosts.",
            "type": "object",
            "maxProperties": MAX_TENANTS,
            "propertyNames": _name(ANY_HOST) | {"allOf": [{"pattern": _NO_ADDRESS}]},
            "additionalProperties": _list(_definition("host")),
        },
        "rules": {
            "description": "Who may receive and send what; the first rule that matches decides.",
            "maxItems": MAX_RULES,
        }
        | _list(_definition("rule")),
        "default": {
            "description": "What is decided where no rule matches.",
            "enum": list(ACTIONS),
            "default": "deny",
        },
        "labels": {
            "description": "What is said of switches, and of ports written SWITCH:PORT: keys and values.",
            "type": "object",
            "maxProperties": MAX_LABELLED,
            "propertyNames": {"pattern": _LABELLED},
            "additionalProperties": _definition("labels"),
        },
        "static_members": {
            "description": "Ports that are given a group whatever their hosts say.",
            "maxItems": MAX_STATIC_MEMBERS,
        }
        | _list(_definition("static_member")),
        "vlans": {"description": "Which VLANs edge ports are in; links between switches carry all."}
        | _mapping({name: vlan_section[name] for name in SECTION_KEYS}, ()),
        "link_aggregations": {
            "description": "Ports that lead to one host each: names of link aggregation groups to their ports.",
            "type": "object",
            "maxProperties": MAX_LINK_AGGREGATIONS,
            "propertyNames": {"pattern": f"^{PORT_NAME}$"},
            "additionalProperties": _definition("link_aggregation"),
        },
        "fabrics": {
            "description": "What parts of the network are called that no link joins: names to switches in them.",
            "type": "object",
            "maxProperties": MAX_FABRICS,
            "propertyNames": {"pattern": f"^{LABEL_KEY}$", "not": {"enum": list(RESERVED_LABELS)}},
            "additionalProperties": _definition("fabric"),
        },
        "pools": pools_schema(),
        "classes": {
            "description": "How important groups and hosts are, and their goals; the first that matches counts.",
            "maxItems": MAX_CLASSES,
        }
        | _list(_definition("service_class")),
    }
    return {
        "$schema": DIALECT,
        "title": "Policy file of vsrt-controller",
        **_mapping({name: sections[name] for name in SECTIONS}, ("version",)),
        "$defs": _definitions(),
    }


def schema_text() -> str:
    """Return the schema as the text of its file."""
    return json.dumps(policy_schema(), indent=2) + "\n"


def _definitions() -> Schema:
    rule = {
        "name": {"description": "Stands in decisions, counters and the audit log; unique."} | _name(DEFAULT_RULE),
        "groups": {"description": "Groups and prefixes of groups; where absent, every group."}
        | _list(_definition("group"), least=1),
        "role": {"description": "What is asked for; `any` is receiver and sender."},
        "hosts": {
            "description": "Tenants and hosts, or any.",
            "anyOf": [{"const": ANY_HOST}, _list(_definition("tenant_or_host"), least=1)],
        },
        "sources": {"description": "The only sources that the rule is about."}
        | _list(_definition("source"), least=1),
        "vlan": {
            "description": "The only VLANs that the rule is about, one or a list.",
            "anyOf": [_some_vlans(), _list(_some_vlans(), least=1)],
        },
        "action": {"description": "What is decided.", "enum": list(ACTIONS)},
    }
    dpid = {
        "description": "A datapath id: decimal, 0x..., or in quotes 16 hexadecimal digits; or a switch's name.",
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": MAX_DPID},
            {"type": "string", "pattern": f"{_DPID}|^{SWITCH_NAME}$"},
        ],
    }
    named_switch = {
        "dpid": _definition("dpid"),
        "ports": {
            "description": "Numbers of ports to their names.",
            "type": "object",
            "propertyNames": {"pattern": "^([1-9][0-9]{0,9}|0x[0-9a-fA-F]{1,8})$"},
            "additionalProperties": {"type": "string", "pattern": f"^{PORT_NAME}$"},
        },
    }
    port = {
        "dpid": _definition("dpid"),
        "port": {"type": "integer", "minimum": 1, "maximum": MAX_PORT_NO},
    }
    static_member = {
        "group": _definition("single_group"),
        "ports": {"description": "Where the group is given."} | _list(_definition("port"), least=1),
    }
    link_aggregation = {
        "mode": {"description": "How the host comes to use the ports.", "enum": list(MODES)},
        "ports": {"description": "Ports that lead to the host.", "maxItems": MAX_LEGS}
        | _list(_definition("port"), least=2),
    }
    host_patterns = (_IPV4 + _IPV4_LENGTH, _IPV6 + _IPV6_LENGTH, _HOST_MAC)
    tenant_or_address = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH}
    definitions = {
        "rule": {"anyOf": [_host_rule(rule), _router_rule(rule)]},
        "group": _text("IPv4 or IPv6 group, or prefix.", _IPV4_GROUP + _IPV4_LENGTH, _IPV6_GROUP + _IPV6_LENGTH),
        "single_group": _text(
            "IPv4 or IPv6 group, in a VLAN with @ and its id or name behind.",
            *(g + f"(@({_VLAN_ID}|{VLAN_NAME}))?" for g in (_IPV4_GROUP, _IPV6_GROUP)),
        ),
        "source": _text("IP address or prefix.", _IPV4 + _IPV4_LENGTH, _IPV6 + _IPV6_LENGTH),
        "dpid": dpid,
        "named_switch": {"description": "What a switch and its ports are called."}
        | _mapping(named_switch, ("dpid",)),
        "port": {"description": "A port of a switch."} | _mapping(port, tuple(port)),
        "label_value": {
            "description": "Letters, digits, dots, underscores and hyphens.",
            "type": ["string", "integer", "boolean"],
            "pattern": f"^{LABEL_VALUE}$",
        },
        "labels": _labels("Keys and values."),
        "static_member": {"description": "A group and the ports that are given it."}
        | _mapping(static_member, ENTRY_KEYS),
        "link_aggregation": {"description": "A link aggregation group."}
        | _mapping(link_aggregation, AGGREGATION_KEYS),
        "fabric": {"description": "Switches of a fabric, the surest first.", "maxItems": MAX_SWITCHES}
        | _list(_definition("dpid"), least=1),
        "host": {
            "description": "A host by IP address, prefix, MAC address or switch port.",
            "anyOf": [_text("IP address, prefix or MAC address.", *host_patterns), _definition("port")],
        },
        "tenant_or_host": {
            "description": "A tenant, or a host by IP address, prefix, MAC address or switch port.",
            "anyOf": [tenant_or_address, _definition("port")],
        },
        "vlan_id": {"description": "A VLAN.", "type": "integer", "minimum": 1, "maximum": MAX_VLAN_ID},
        "vlan_range": _text("VLANs from the first to the last, such as 30-35.", f"{_VLAN_ID}-{_VLAN_ID}"),
        "vlan_name": {
            "description": "A letter, then letters, digits, spaces, dots, underscores and hyphens.",
            "type": "string",
            "pattern": f"^{VLAN_NAME}$",
            "not": {"enum": list(RESERVED_NAMES)},
        },
        "vlan_entry": {
            "description": "Ports and their VLANs.",
            "anyOf": [
                _mapping({where: what} | said, (where, required))
                for where, what in _vlan_ports().items()
                for required, said in _port_vlans().items()
            ],
        },
        "registration": {"description": "Groups of a source VLAN, and the VLANs whose receivers get them."}
        | _mapping(_registration(), REGISTRATION_KEYS),
        "service_class": {"description": "A service class.", "anyOf": list(_service_class())},
        Threshold.__name__: _section(Threshold, REQUIRED_THRESHOLD_KEYS),
        TableShare.__name__: _section(TableShare),
        PeerWindows.__name__: _section(PeerWindows),
    }
    waiting = list(SETTING_SECTIONS.values())
    while waiting:
        type_ = waiting.pop()
        if type_.__name__ not in definitions:
            definitions[type_.__name__] = _section(type_)
            waiting += [entry.type for entry in declared(type_).values() if isinstance(entry, Section)]
    return dict(sorted(definitions.items()))


def _service_class() -> Iterator[Schema]:
    """Yield what a class may be: managed, with a goal if any, or discretionary; about groups, hosts or both."""
    goals = [
        _mapping({str(kind): {"type": "number", "minimum": lower, "maximum": upper}}, (str(kind),))
        for kind, (lower, upper) in GOAL_BOUNDS.items()
    ]
    keys: Schema = {
        "name": {"description": "Stands in events and documents; unique.", "type": "string"}
        | {"minLength": 1, "maxLength": MAX_NAME_LENGTH, "pattern": _NAME},
        "importance": {
            "description": "1 is the most important, 6 discretionary.",
            "type": "integer",
            "minimum": MOST_IMPORTANT,
        },
        "groups": {"description": "Groups and prefixes of groups; where absent, all traffic of the hosts."}
        | _list(_definition("group"), least=1),
        "hosts": {
            "description": "Tenants and hosts, or any; where absent, every host.",
            "anyOf": [{"const": ANY_HOST}, _list(_definition("tenant_or_host"), least=1)],
        },
        "goal": {"description": "What the class shall have: one of these.", "anyOf": goals},
        "dscp": {
            "description": "Code point that its packets are given.",
            "anyOf": [{"type": "integer", "minimum": 0, "maximum": MAX_DSCP}, {"enum": list(DSCP_NAMES)}],
        },
        "aliases": {
            "description": "Whether its groups may get and give trees.",
            "type": "boolean",
            "default": True,
        },
    }
    keys = {name: keys[name] for name in CLASS_KEYS}
    for about in ("groups", "hosts"):
        managed = keys["importance"] | {"maximum": DISCRETIONARY - 1}
        discretionary = {name: keys[name] for name in CLASS_KEYS if name != "goal"}
        required = (*REQUIRED_CLASS_KEYS, about)
        yield _mapping(keys | {"importance": managed}, required)
        yield _mapping(discretionary | {"importance": {"const": DISCRETIONARY}}, required)


def _vlan_ports() -> Schema:
    """Return what an entry of `vlans` may name ports by."""
    return {
        "ports": {"description": "These ports."} | _list(_definition("port"), least=1),
        "switches": {"description": "All edge ports of these switches."} | _list(_definition("dpid"), least=1),
        "labels": _labels("Ports that have all these labels, or whose switches have them.") | {"minProperties": 1},
        "tier": {"description": "All edge ports of the switches of this tier.", "enum": list(TIERS)},
    }


def _port_vlans() -> dict[str, Schema]:
    """Return what may be said of ports in `vlans`, by the key that must be there."""
    vlan = [_definition("vlan_id"), _definition("vlan_name")]
    vlan_or_untagged = {"anyOf": [*vlan, {"const": UNTAGGED}]}
    members = _list({"anyOf": [*vlan, _definition("vlan_range")]}, least=1)
    return {
        "access": {
            "access": {"description": "VLAN of frames without a tag."} | vlan_or_untagged,
            "voice": {"description": "VLAN of frames with its tag.", "anyOf": vlan},
        },
        "trunk": {
            "trunk": {"description": "VLANs of frames with their tags.", "anyOf": [{"const": ALL}, members]},
            "native": {"description": "VLAN of frames without a tag; dropped where absent."} | vlan_or_untagged,
        },
    }


def _registration() -> Schema:
    """Return what an entry of `vlans.mvr` says."""
    vlan = [_definition("vlan_id"), _definition("vlan_name")]
    return {
        "source_vlan": {"description": "The VLAN in which the groups are sent.", "anyOf": vlan},
        "groups": {"description": "Groups and prefixes of groups."} | _list(_definition("group"), least=1),
        "receiver_vlans": {"description": "VLANs whose receivers get these groups."} | _list(_some_vlans(), least=1),
    }


def _some_vlans() -> Schema:
    """Return how a VLAN, or a range of VLANs, stands where one may do so by its name too."""
    names = (_definition(name) for name in ("vlan_id", "vlan_name", "vlan_range"))
    return {"anyOf": [*names, {"const": UNTAGGED}]}


def _labels(description: str) -> Schema:
    return {
        "description": description,
        "type": "object",
        "maxProperties": MAX_LABELS,
        "propertyNames": {"pattern": f"^{LABEL_KEY}$", "not": {"enum": list(RESERVED_LABELS)}},
        "additionalProperties": _definition("label_value"),
    }


def _host_rule(keys: Schema) -> Schema:
    role = keys["role"] | {"enum": [role for role in ROLES if role != Role.ROUTER]}
    return _mapping({name: keys[name] for name in RULE_KEYS} | {"role": role}, (*REQUIRED_RULE_KEYS, "groups"))


def _router_rule(keys: Schema) -> Schema:
    role = {"description": "A multicast router or querier.", "const": str(Role.ROUTER)}
    names = [name for name in RULE_KEYS if name not in ("sources", "vlan")]
    return _mapping({name: keys[name] for name in names} | {"role": role}, REQUIRED_RULE_KEYS)


def _section(type_: type[Any], required: Collection[str] = ()) -> Schema:
    settings = {
        name: _reference(entry.type) if isinstance(entry, Section) else _setting(entry)
        for name, entry in declared(type_).items()
    }
    return {"description": getdoc(type_)} | _mapping(settings, required)


def _setting(entry: Setting) -> Schema:
    described: Schema = {"description": f"{entry.meaning} Unit: {entry.unit}." if entry.unit else entry.meaning}
    default = _as_json(entry.default)
    if default not in (None, ""):
        described["default"] = default
    return described | _type_of(entry)


def _type_of(entry: Setting) -> Schema:
    ports = _list(_definition("port"))
    match entry.type:
        case SettingType.INTEGER | SettingType.NUMBER:
            bounds = {"minimum": _as_json(entry.lower), "maximum": _as_json(entry.upper)}
            return {"type": "integer" if entry.type is SettingType.INTEGER else "number"} | bounds
        case SettingType.BOOLEAN:
            return {"type": "boolean"}
        case SettingType.CHOICE:
            return {"enum": list(entry.choices)}
        case SettingType.TEXT:
            return {"type": "string", "minLength": 1}
        case SettingType.IP:
            return {"type": "string", "pattern": f"^({_IPV4}|{_IPV6})$"}
        case SettingType.IPV4:
            return {"type": "string", "pattern": f"^{_IPV4}$"}
        case SettingType.IPV6_LINK_LOCAL:
            return {"type": "string", "pattern": f"^{_IPV6_LINK_LOCAL}$"}
        case SettingType.IPV4_IN_VLANS:
            return _list({"type": "string", "pattern": f"^{_IPV4}@({_VLAN_ID}|{VLAN_NAME})$"})
        case SettingType.PORTS:
            return ports
        case SettingType.BOOLEAN_OR_PORTS:
            return {"anyOf": [{"type": "boolean"}, ports]}
        case SettingType.SWITCHES:
            return _list(_definition("dpid"))
        case SettingType.LINKS:
            return _list({"minItems": 2, "maxItems": 2} | ports)
        case SettingType.STATIC_TREES:
            return {
                "type": "object",
                "propertyNames": {"pattern": f"^({_IPV4_GROUP + _IPV4_LENGTH}|{_IPV6_GROUP + _IPV6_LENGTH})$"},
                "additionalProperties": {"type": "integer", "minimum": 1, "maximum": MAX_ALIASES},
            }
        case SettingType.CAPACITIES:
            return {
                "type": "object",
                "propertyNames": {"minLength": 1},
                "additionalProperties": {"type": "integer", "minimum": 1, "maximum": MOST_ENTRIES},
            }
        case SettingType.TENANT_SHARES:
            return {"type": "object", "additionalProperties": _reference(TableShare)}
        case SettingType.PEER_WINDOWS:
            return {
                "type": "object",
                "properties": {name: _reference(PeerWindows) for name in PEER_GROUPS},
                "additionalProperties": False,
            }
        case SettingType.OVSDB_SERVERS | SettingType.WORDS:
            return _list({"type": "string", "minLength": 1})
        case SettingType.THRESHOLDS:
            return _list(_reference(Threshold))


def _as_json(value: Any) -> Any:
    match value:
        case bytes():
            return format_ip(value)
        case frozenset() | tuple():
            return list(value)
        case float() if value.is_integer():
            return int(value)
    return value


def _mapping(properties: Schema, required: Collection[str]) -> Schema:
    mapping = {"type": "object", "properties": properties, "additionalProperties": False}
    return mapping | {"required": list(required)} if required else mapping


def _list(items: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": items} | ({"minItems": least} if least else {})


def _text(description: str, *patterns: str) -> Schema:
    return {"description": description, "type": "string", "pattern": f"^({'|'.join(patterns)})$"}


def _name(reserved: str) -> Schema:
    name = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH, "pattern": _NAME}
    return name | {"not": {"const": reserved}}


def _definition(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _reference(type_: type[Any]) -> Schema:
    return _definition(type_.__name__)
