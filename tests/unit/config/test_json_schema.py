"""The JSON Schema of the policy file against the reader of policy files: they take and refuse the same."""

import copy
import ipaddress
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from apps.cli.main import main
from controller.config import PolicyError, PolicyInvalid, load_policy
from controller.config.json_schema import policy_schema, schema_text
from controller.config.load import SECTIONS
from controller.config.settings import SETTING_SECTIONS, Section, Setting, all_settings, declared
from controller.config.terms import LABEL_KEY, LABEL_VALUE, PORT_NAME, SWITCH_NAME

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "controller" / "config" / "policy.schema.json"
POLICIES = sorted((ROOT / "policies").glob("*.yaml"))

SCHEMA = policy_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
BOUNDED = [(name, entry) for name, entry in all_settings() if entry.lower is not None]

BEYOND_A_SCHEMA = re.compile(
    "unknown tenant|is above the limit|are reserved, and a table has room for|slots of the store, what each|"
    "has host bits set|link scope|is already the name of the rule|is in tenant .* already"
    "|could be taken for an address|is not below query_interval_s|is above raise_above"
    "|the switch has a name already|is already the name of another port"
    "|is neither http://|cannot name a fabric|addresses; at most|in clear: use https"
    r"|is not within 1 and 30 \(days\)|missing, while"
    "|is no https:// or http:// address|is neither unix:PATH nor|is neither a socket's path"
    "|is the end of two links|at different switches|is not a loopback address|cannot both listen"
    r"|is for source-specific multicast|is given \S+ already|VLAN \d+ has \S+ already"
    "|is already the name of VLAN|has a label|names no other VLAN|is upside down|its frames have a tag, or"
    "|which is as specific|is in .* already|are not in the same VLANs|is in multicast.router_ports.static"
    "|is the end of a link in topology"
    "|has its number already|per_group allows|the pool holds|is already the name of the class"
    "|no port is in VLAN|no VLAN is called|is the source VLAN itself|which the entry on line"
    "|has addresses of|no address of it can be given|never leave their link|groups of several scopes"
    "|no switch of that name|the same has labels already|only a policy that is itself in a file"
)
RULE = {"name": "feed", "groups": ["239.1.0.0/16"], "role": "any", "hosts": "any", "action": "allow"}


def faults(document: object) -> tuple[PolicyError, ...]:
    """Return what the reader finds wrong in a document."""
    try:
        load_policy(json.dumps(document, ensure_ascii=False))
    except PolicyInvalid as error:
        return error.errors
    return ()


def nested(name: str, value: object) -> dict[str, Any]:
    """Return a policy with one value, at a name such as ``multicast.querier.robustness``."""
    for step in reversed(name.split(".")):
        value = {step: value}
    return {"version": 1, **value}  # type: ignore[dict-item]


def section_names() -> list[str]:
    found = list(SETTING_SECTIONS.items())
    for name, type_ in found:
        found += [
            (f"{name}.{key}", entry.type) for key, entry in declared(type_).items() if isinstance(entry, Section)
        ]
    return [name for name, _ in found]


def test_it_is_a_schema_of_every_section():
    Draft202012Validator.check_schema(SCHEMA)
    assert tuple(SCHEMA["properties"]) == SECTIONS


def test_the_published_file_is_what_the_declarations_give():
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text(), f"run: vsrt policy schema >{PUBLISHED.name}"


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["", "json"])
def test_the_command_prints_it(options: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["policy", "schema", *options]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.name)
def test_example_policies_are_valid(path: Path):
    assert list(VALIDATOR.iter_errors(yaml.safe_load(path.read_text(encoding="utf-8")))) == []


def test_policies_in_the_documents_are_valid():
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        indented = re.findall(r"(?m)^((?: {4}.*\n| *\n)*(?: {4}version: 1\n)(?: {4}.*\n| *\n)*)", text)
        fenced = re.findall(r"(?ms)^```yaml[^\n]*\n(.*?)^```$", text)
        blocks = [yaml.safe_load(block) for block in indented + fenced if re.search(r"(?m)^ *version: 1$", block)]
        of_policies = set(SECTIONS) - {"version", "topology"}  # scenarios of emulation have these too
        found += [(path.name, block) for block in blocks if not block.keys().isdisjoint(of_policies)]
    assert len(found) >= 5
    for name, document in found:
        assert (name, list(VALIDATOR.iter_errors(document)), faults(document)) == (name, [], ())


@pytest.mark.parametrize(
    "document",
    [
        nested("unknown", 1),
        *(nested(f"{name}.unknown", 1) for name in section_names()),
        nested("rules", [RULE | {"unknown": 1}]),
        nested("tenants", {"blue": [{"dpid": 1, "port": 2, "unknown": 1}]}),
        nested("monitor.thresholds", [{"counter": "rx_bytes", "unknown": 1}]),
    ],
    ids=lambda document: next(key for key in reversed(document) if key != "version"),
)
def test_an_unknown_key_is_refused_by_both(document: dict[str, Any]):
    assert "unknown key" in faults(document)[0].message
    assert len(list(VALIDATOR.iter_errors(document))) == 1


@pytest.mark.parametrize(
    "document",
    [
        {},
        nested("rules", [{key: RULE[key] for key in RULE if key != "role"}]),
        nested("rules", [{key: RULE[key] for key in RULE if key != "groups"}]),
        nested("tenants", {"blue": [{"dpid": 1}]}),
        nested("monitor.thresholds", [{"raise_above": 1}]),
    ],
)
def test_a_missing_key_is_refused_by_both(document: dict[str, Any]):
    assert faults(document)[0].message.startswith("missing")
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(("name", "entry"), BOUNDED, ids=lambda value: value if isinstance(value, str) else "")
def test_bounds_are_those_of_the_reader(name: str, entry: Setting):
    for value in (entry.lower, entry.upper, entry.lower - 1, entry.upper + 1):
        number = int(value) if value == int(value) else value
        document = nested(name, number)
        refused = any(fault.field == name and " is not within " in fault.message for fault in faults(document))
        beyond = any(BEYOND_A_SCHEMA.search(fault.message) for fault in faults(document))
        assert (number, VALIDATOR.is_valid(document)) == (number, beyond or not refused)


@pytest.mark.parametrize("name", [name for name, _ in all_settings()])
def test_what_has_the_wrong_type_is_refused_by_both(name: str):
    for value in (None, True, 5, 0.5, "text", "32", [], {}, [{}]):
        document = nested(name, value)
        taken = all(BEYOND_A_SCHEMA.search(fault.message) for fault in faults(document))
        assert (value, VALIDATOR.is_valid(document)) == (value, taken)


IPV4_HOSTS = st.integers(1 << 24, (223 << 24) - 1).map(ipaddress.IPv4Address)
IPV6_HOSTS = st.integers(1 << 125, (1 << 126) - 1).map(ipaddress.IPv6Address)
IPV4_GROUPS = st.integers((225 << 24), (240 << 24) - 1).map(ipaddress.IPv4Address)
IPV6_GROUPS = st.integers(0xFF05 << 112, (0xFF06 << 112) - 1).map(ipaddress.IPv6Address)
MACS = st.binary(min_size=5, max_size=5).map(lambda rest: f"02:{rest.hex(':')}")
PREFIXES = st.tuples(IPV4_HOSTS | IPV6_HOSTS, st.integers(8, 32)).map(
    lambda pair: str(ipaddress.ip_network(pair, strict=False))
)
GROUP_PREFIXES = st.tuples(IPV4_GROUPS | IPV6_GROUPS, st.integers(16, 32)).map(
    lambda pair: str(ipaddress.ip_network(pair, strict=False))
)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz -_éλ#'\"{}[]&*!|>%@", min_size=1, max_size=64).filter(
    lambda name: name == name.strip() and name not in ("any", "default")
)
DPIDS = st.integers(1, (1 << 64) - 1)
SWITCH_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9 ._-]{0,20}[A-Za-z._-]", fullmatch=True)
VLAN_IDS = st.integers(1, 4094)
PORT_NUMBERS = st.integers(1, 0xFFFFFF00).map(str)
TEXTS: dict[str, st.SearchStrategy[Any]] = {
    "dpid": DPIDS | DPIDS.map("{:016x}".format) | DPIDS.map(hex) | DPIDS.map(lambda dpid: dpid.to_bytes(8).hex(":")),
    "group": (IPV4_GROUPS | IPV6_GROUPS).map(str) | GROUP_PREFIXES,
    "label_value": st.from_regex(LABEL_VALUE, fullmatch=True) | st.integers(0, 10**9) | st.booleans(),
    "single_group": (IPV4_GROUPS | IPV6_GROUPS).map(str)
    | st.tuples(IPV4_GROUPS | IPV6_GROUPS, VLAN_IDS).map(lambda pair: f"{pair[0]}@{pair[1]}"),
    "source": (IPV4_HOSTS | IPV6_HOSTS).map(str) | PREFIXES,
    "vlan_range": st.tuples(VLAN_IDS, VLAN_IDS).map(lambda pair: "-".join(map(str, sorted(pair)))),
    "vlan_name": st.from_regex("[a-z][a-z 0-9]{0,9}x", fullmatch=True),
    "host": (IPV4_HOSTS | IPV6_HOSTS).map(str) | PREFIXES | MACS,
}
"""Texts of which the schema knows less than what they mean."""
ADDRESSES = {4: IPV4_HOSTS.map(str), 6: st.integers(1, (1 << 64) - 1).map(lambda low: f"fe80::{low:x}"[:24])}


def documents(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return documents that are valid by a part of the policy's schema."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name == "tenant_or_host":
            name = "host"
        return TEXTS[name] if name in TEXTS else st.deferred(lambda: documents(SCHEMA["$defs"][name]))
    if "anyOf" in schema:
        return st.one_of([documents(choice) for choice in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(schema["minimum"], schema["maximum"])
        case "number":
            return st.floats(schema["minimum"], schema["maximum"])
        case "string" if "maxLength" in schema:
            return NAMES
        case "string" if schema.get("pattern") == f"^{PORT_NAME}$":
            return st.sampled_from(["uplink", "eth1/49", "cam 7"])
        case "string" if "@" in schema.get("pattern", ""):
            return st.tuples(IPV4_HOSTS, VLAN_IDS).map(lambda pair: f"{pair[0]}@{pair[1]}")
        case "string" if "pattern" in schema:
            return st.sampled_from(
                ["0.0.0.0", "127.0.0.1", "10.0.0.1"] if "25[0" in schema["pattern"] else ["fe80::1"]
            )
        case "string":
            return NAMES
        case "array":
            return st.lists(documents(schema["items"]), min_size=schema.get("minItems", 0), max_size=2)
    return _mappings(schema)


def _mappings(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    if "properties" not in schema:
        values = documents(schema["additionalProperties"]) if "additionalProperties" in schema else st.integers()
        pattern = schema.get("propertyNames", {}).get("pattern", "")
        if PORT_NAME in pattern:
            return st.dictionaries(st.sampled_from(["server7", "eth1/49", "cam 7"]), values, max_size=2)
        if LABEL_KEY in pattern:
            least = schema.get("minProperties", 0)
            return st.dictionaries(st.sampled_from(["pod", "rack.row-2", "room"]), values, min_size=least, max_size=2)
        if "409[0-4]" in pattern:
            return st.dictionaries(VLAN_IDS.map(str), values, max_size=2)
        if "22[4-9]" in pattern:
            return st.dictionaries(st.sampled_from(["239.1.0.0/16", "239.1.1.1", "ff3e::/32"]), values, max_size=2)
        keys = SWITCH_NAMES if SWITCH_NAME in pattern else PORT_NUMBERS if "0x" in pattern else NAMES
        return st.dictionaries(keys, values, max_size=2)
    properties = {
        name: st.deferred(lambda name=name: documents(schema["properties"][name])) for name in schema["properties"]
    }
    required = {name: properties.pop(name) for name in schema.get("required", ())}
    return st.fixed_dictionaries(required, optional=properties)


@settings(max_examples=250)
@given(documents(SCHEMA))
def test_what_the_schema_takes_the_reader_takes(document: dict[str, Any]):
    assert list(VALIDATOR.iter_errors(document)) == []
    assert [fault for fault in faults(document) if not BEYOND_A_SCHEMA.search(fault.message)] == []


def places(document: Any) -> list[tuple[Any, Any]]:
    """Return every container of a document with each of its keys."""
    found: list[tuple[Any, Any]] = []
    if isinstance(document, dict | list):
        for key in document if isinstance(document, dict) else range(len(document)):
            found += [(document, key), *places(document[key])]
    return found


ODD = st.sampled_from(
    [None, True, -1, 0, 7, 0.25, 1e300, 1 << 70, "", "any", "10.0.0.1", "x y", "239.1.1.1/40", [], {}]
)


@settings(max_examples=250)
@given(documents(SCHEMA), ODD, st.randoms(use_true_random=False))
def test_what_the_schema_refuses_the_reader_refuses(document: dict[str, Any], odd: object, random: Any):
    changed = copy.deepcopy(document)
    container, key = random.choice(places(changed))
    container[key] = odd
    if not VALIDATOR.is_valid(changed):
        assert faults(changed) != ()
