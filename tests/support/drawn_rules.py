"""Rules drawn at random: any that a version of OpenFlow can say."""

from __future__ import annotations

from hypothesis import strategies as st

from controller.rules.model import (
    OFPP_CONTROLLER,
    FlowEntry,
    FlowKey,
    Goto,
    Match,
    Meter,
    Output,
    PopVlan,
    PushVlan,
    SetDscp,
    SetEthDst,
    SetQueue,
    SetVlan,
    ToGroup,
)
from controller.rules.pipeline import ETH_TYPE_IPV4, ETH_TYPE_IPV6

macs = st.binary(min_size=6, max_size=6)


def prefixed(size, prefix, raw):
    keep = 8 * size - prefix
    return (int.from_bytes(raw, "big") >> keep << keep).to_bytes(size, "big"), prefix


def addresses(size):
    return st.builds(prefixed, st.just(size), st.integers(1, 8 * size), st.binary(min_size=size, max_size=size))


# Strategies are made once: making them in each draw takes longer than drawing from them.
maybe_ports = st.none() | st.integers(1, 0xFEFF) | st.sampled_from([0xFFFFFFFE])
maybe_macs = st.none() | macs
masks = macs.filter(lambda mask: any(mask) and mask != b"\xff" * 6)
maybe_queues = st.sampled_from([None, None, 0, 7, 2**32 - 2])
vlan_ids = st.integers(1, 4094)
maybe_vlan_ids = st.none() | vlan_ids
maybe_octets = st.none() | st.integers(0, 255)
other_eth_types = st.sampled_from([0x0806, 0x88CC, 0x8847])
MATCH_KINDS = {
    version: st.sampled_from([None, "v4", "other", *more]) for version, more in ((1, ()), (4, ("v6", "mask")))
}
MAYBE_ADDRESSES = {"v4": st.none() | addresses(4), "v6": st.none() | addresses(16)}


@st.composite
def matches(draw, version):
    """Any match in canonical form that the version can say."""
    fields = {
        "in_port": draw(maybe_ports),
        "eth_src": draw(maybe_macs),
        "eth_dst": draw(maybe_macs),
        "vlan_id": draw(maybe_vlan_ids),
    }
    fields["tagged"] = fields["vlan_id"] is None and draw(st.booleans())
    kind = draw(MATCH_KINDS[version])
    if kind == "mask":
        mask = draw(masks)
        fields["eth_dst"] = bytes(a & b for a, b in zip(draw(macs), mask, strict=True))
        fields["eth_dst_mask"] = mask
    if kind == "other":
        fields["eth_type"] = draw(other_eth_types)
    if kind in ("v4", "v6"):
        fields["eth_type"] = ETH_TYPE_IPV4 if kind == "v4" else ETH_TYPE_IPV6
        fields["ip_proto"] = draw(maybe_octets)
        if fields["ip_proto"] == 58 and kind == "v6":
            fields["icmpv6_type"] = draw(maybe_octets)
        for name in ("ip_src", "ip_dst"):
            value = draw(MAYBE_ADDRESSES[kind])
            if value is not None:
                fields[name], fields[name + "_prefix"] = value
    return Match(**fields)


@st.composite
def queued(draw, actions):
    """The actions with queues before some outputs, as OpenFlow 1.0 can say them."""
    said, queue_id = [], None
    for action in actions:
        if isinstance(action, Output) and action.port_no != OFPP_CONTROLLER:
            wanted = draw(maybe_queues)
            if wanted is not None and wanted != queue_id:
                queue_id = wanted
                said.append(SetQueue(wanted))
        said.append(action)
    return said


@st.composite
def tagging(draw, match, actions):
    """The actions with some on VLAN tags before them, as both versions can say them."""
    said, is_tagged = [], match.tagged or match.vlan_id is not None
    for action in actions:
        if not (said and isinstance(said[-1], SetQueue)) and draw(st.booleans()):
            wanted = draw(st.sampled_from([SetVlan, PopVlan] if is_tagged else [PushVlan]))
            is_tagged = wanted is not PopVlan
            said.append(wanted(draw(vlan_ids)) if is_tagged else PopVlan())
        said.append(action)
    return said


@st.composite
def marking(draw, version, match, actions):
    """The actions with code points set before some of them, where the match lets both versions do so."""
    if match.eth_type not in ((ETH_TYPE_IPV4,) if version == 1 else (ETH_TYPE_IPV4, ETH_TYPE_IPV6)):
        return actions
    said = []
    for action in actions:
        if not (said and isinstance(said[-1], SetQueue)) and draw(st.booleans()):
            said.append(SetDscp(draw(st.integers(0, 63))))
        said.append(action)
    return said


outputs_and_macs = (st.integers(1, 0xFEFF) | st.just(OFPP_CONTROLLER)).map(Output) | macs.map(SetEthDst)
queues_and_groups = st.integers(0, 2**32 - 2).map(SetQueue) | st.integers(1, 0xFFFFFF00).map(ToGroup)
ACTIONS = {
    1: st.lists(outputs_and_macs, max_size=6),
    4: st.lists(outputs_and_macs | queues_and_groups, max_size=6),
}
MATCHES = {version: matches(version) for version in (1, 4)}


@st.composite
def rules(draw, version):
    """Any rule that the version can say."""
    table = 0 if version == 1 else draw(st.integers(0, 200))
    key = FlowKey(table, draw(st.integers(0, 0xFFFF)), draw(MATCHES[version]))
    actions = draw(ACTIONS[version])
    if version == 1:
        actions = [] if key.match.tagged else draw(queued(actions))
    actions = draw(marking(version, key.match, draw(tagging(key.match, actions))))
    if version == 4:
        if draw(st.booleans()):
            actions.insert(0, Meter(draw(st.integers(1, 0xFFFF))))
        if draw(st.booleans()):
            actions.append(Goto(draw(st.integers(table + 1, 253))))
    timeouts = st.integers(0, 0xFFFF)
    return FlowEntry(key, tuple(actions), draw(st.integers(0, 2**64 - 2)), draw(timeouts), draw(timeouts))


RULES = {version: rules(version) for version in (1, 4)}
VERSIONED_RULES = {version: st.tuples(st.just(version), RULES[version]) for version in RULES}
VERSIONED_LISTS = {version: st.tuples(st.just(version), st.lists(RULES[version], max_size=5)) for version in RULES}
SOME_RULES = {version: st.lists(RULES[version], min_size=1, max_size=3) for version in RULES}
versions = st.sampled_from([1, 4])
versioned_rules = versions.flatmap(VERSIONED_RULES.__getitem__)
versioned_lists = versions.flatmap(VERSIONED_LISTS.__getitem__)
