"""How groups, their trees, members and senders become rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apps.cli.called import SnapshotNames
from apps.cli.perf_console import scaled
from apps.cli.show_cells import Fields, Row, place, text


def group_rows(group: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a group in the table of all."""
    sending = group.get("senders") or ()
    admitted = sum(1 for sender in sending if sender["admitted"])
    yield (
        group["group"],
        text(group.get("vlan_name") or group.get("vlan")),
        len(group.get("members") or ()),
        len(group.get("static_members") or ()),
        admitted,
        len(group.get("refused") or ()) + len(sending) - admitted,
        scaled(group.get("rate_bps"), "bit/s"),
        _tree(group),
    )


def _tree(group: Fields) -> str:
    if group.get("unsupported"):
        return "unsupported"
    if group.get("source_vlan") is not None:
        return f"of VLAN {group.get('source_vlan_name') or group['source_vlan']}"
    detached = group.get("detached")
    found = f"{len(group.get('links') or ())} links"
    if aliases := group.get("aliases"):
        found += f", {len(aliases)} alias{'es' * (len(aliases) != 1)}"
    return found + (f", {len(detached)} switches cut off" if detached else "")


def rows_of_group(group: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the rows of one group: its trees, members and senders."""
    yield "tree", "-", "-", "-", _tree(group)
    for link in group.get("links") or ():
        yield "link", " - ".join(_tree_link(link, called)), "-", "-", "-"
    for alias in group.get("aliases") or ():
        carried = f"{_taking(alias)}, {scaled(alias['rate_bps'], 'bit/s')}"
        yield f"alias {alias['number']}", "-", "-", "-", f"{len(alias['links'])} links, {alias['state']}, {carried}"
        if alias.get("reason"):
            yield f"why alias {alias['number']}", "-", "-", "-", alias["reason"]
        for link in alias["links"]:
            yield f"link of alias {alias['number']}", " - ".join(_tree_link(link, called)), "-", "-", "-"
    for member in group.get("members") or ():
        yield "member", *_host(member, called), _sources(member)
    for vlan in group.get("receiver_vlans") or ():
        yield (
            "receivers",
            f"{vlan['ports']} port{'s' * (vlan['ports'] != 1)}",
            "-",
            "-",
            f"VLAN {_receiver_vlan(vlan)}",
        )
    for port in group.get("static_members") or ():
        yield "static member", place(port, called), "-", "-", _static(port)
    for member in group.get("refused") or ():
        yield "refused member", *_host(member, called), _refused_by(member)
    for sender in group.get("senders") or ():
        yield "sender" if sender["admitted"] else "refused sender", *_host(sender, called), _sending(sender)


def _receiver_vlan(vlan: Fields) -> str:
    """Return what a VLAN is called that gets a group of another."""
    return str(vlan.get("vlan_name") or vlan.get("vlan") or "untagged")


def _tree_link(link: Sequence[int], called: SnapshotNames) -> Iterator[str]:
    """Yield both ends of a link of a tree: switches, or ports where several cables join them."""
    if len(link) == 2:
        yield from (called.label(dpid) for dpid in link)
    else:
        for dpid, port_no in zip(link[:2], link[2:], strict=True):
            yield place({"dpid": dpid, "port_no": port_no}, called)


def _static(port: Fields) -> str:
    """Return who gives a port its group, and what that waits for."""
    by = f", set by the {port['set_by']}" if port.get("set_by") else ""
    waits = f"; waits: {port['waiting_for']}" if port.get("waiting_for") else ""
    return f"any source{by}{waits}"


def _host(fields: Fields, called: SnapshotNames) -> Row:
    return place(fields, called), text(fields.get("mac")), text(fields.get("ip"))


def _taking(alias: Fields) -> str:
    """Return what takes a further tree."""
    if parts := alias.get("flow_parts"):
        return f"{parts} parts of flows"
    return f"{alias['senders']} sender{'s' * (alias['senders'] != 1)}"


def _sources(member: Fields) -> str:
    sources = member.get("sources")
    return f"{member.get('mode')} {','.join(sources)}" if sources else "any source"


def _refused_by(member: Fields) -> str:
    """Return the rule that refuses a member and why, and which sources it asked for."""
    why = f"rule {member['rule']}: {member.get('reason')}" if member.get("rule") else "refused"
    return f"{why} ({_sources(member)})" if member.get("sources") else why


def _sending(sender: Fields) -> str:
    mark = "" if sender.get("dscp") is None else f", DSCP {sender['dscp']}"
    tree = f", alias {sender['alias']}" if sender.get("alias") else ""
    if sender.get("divided"):
        tree = ", divided by flow"
    return f"{scaled(sender.get('rate_bps'), 'bit/s')}, rule {sender.get('rule')}{mark}{tree}"


def member_rows(member: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a member."""
    detail = _member_static(member) if member.get("static") else _sources(member)
    yield member["group"], *_host(member, called), detail


def _member_static(member: Fields) -> str:
    return f"static; waits: {member['waiting_for']}" if member.get("waiting_for") else "static"


def sender_rows(sender: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a sender."""
    yield sender["group"], *_host(sender, called), scaled(sender.get("rate_bps"), "bit/s"), text(sender.get("rule"))


def refusal_rows(refused: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a refusal."""
    detail = _sending(refused) if refused["role"] == "sender" else _refused_by(refused)
    yield refused["group"], refused["role"], *_host(refused, called), detail


def alias_rows(group: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a group with aliases: how its senders are split, its own tree first."""
    aliases, senders = group.get("aliases") or (), group.get("senders") or ()
    taking = [sum(1 for sender in senders if sender["admitted"] and not sender.get("alias"))]
    taking += [alias["senders"] for alias in aliases]
    unit = ""
    if group.get("flow_parts") or any(alias.get("flow_parts") for alias in aliases):
        taking, unit = [tree.get("flow_parts") or 0 for tree in (group, *aliases)], " parts of flows"
    yield (
        group["group"],
        1 + len(aliases),
        ", ".join(dict.fromkeys(alias["state"] for alias in aliases)),
        " + ".join(map(str, taking)) + unit,
        scaled(group.get("rate_bps"), "bit/s"),
        text(group.get("queue_packets")),
        text(group.get("utilisation_pct")),
    )
