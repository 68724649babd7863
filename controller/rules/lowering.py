"""The OpenFlow versions there are, by wire version: how rules become messages, and replies become rules again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from controller.effects import ApplyEdits, Define, Edit, Put, Undefine
from controller.rules import of10, of10_roles, of13, of13_resources
from controller.rules.model import Entry, FlowEntry, FlowKey, Resource
from controller.rules.openflow import FlowCounter, FlowStats, NotExpressible
from controller.rules.pipeline import OPENFLOW_1_0, OPENFLOW_1_3
from controller.rules.table_capacity import encode_tables_request


@dataclass(frozen=True, slots=True)
class Lowering:
    """One OpenFlow version; see the functions of the same names in `of13`, `of13_resources` and `of10`.

    `barrier_reply` is the type of the message that answers a barrier request, `table_full` the type and code of the
    error that a switch without room gives. `resource_kinds` is what beside
    flow entries a switch can hold; where that is nothing no resource is expressible.
    """

    expressible: Callable[[FlowEntry], str | None]
    encode_put: Callable[[FlowEntry, int], bytes]
    encode_remove: Callable[[FlowKey, int], bytes]
    encode_barrier: Callable[[int], bytes]
    encode_packet_out: Callable[[Iterable[int], bytes, int], bytes]
    encode_flow_stats_request: Callable[[int, int, int], bytes]
    encode_flow_stats_entry: Callable[[FlowCounter], bytes]
    encode_flow_stats_reply: Callable[[int, bool, bytes], bytes]
    decode_flow_stats: Callable[..., FlowStats]
    barrier_reply: int
    resource_expressible: Callable[[Resource], str | None]
    table_full: tuple[int, int]
    resource_kinds: tuple[str, ...]
    encode_role_request: Callable[[int, int, int], bytes]
    has_generations: bool
    encode_tables_request: Callable[[int], bytes]

    def problem(self, entry: Entry) -> str | None:
        """Return None where this version can say a flow entry, a group or a meter, the reason where it cannot."""
        return self.expressible(entry) if isinstance(entry, FlowEntry) else self.resource_expressible(entry)

    def encode_batch(self, effect: ApplyEdits) -> bytes:
        """Return the edits in order and their barrier, ready to be written at once."""
        encode_put, encode_remove = self.encode_put, self.encode_remove
        xid = effect.first_xid
        messages = []
        for edit in effect.edits:
            kind = type(edit)
            if kind is Put:
                messages.append(encode_put(edit[0], xid))  # type: ignore[arg-type]
            elif kind is Define or kind is Undefine:
                messages.append(self._encode_resource(edit, xid))
            else:
                messages.append(encode_remove(edit[0], xid))  # type: ignore[arg-type]
            xid += 1
        messages.append(self.encode_barrier(xid))
        return b"".join(messages)

    def _encode_resource(self, edit: Edit, xid: int) -> bytes:
        if not self.resource_kinds:
            raise NotExpressible("OpenFlow 1.0 has no groups and no meters")
        if isinstance(edit, Define):
            return of13_resources.encode_resource_put(edit.resource, xid, exists=edit.exists)
        assert isinstance(edit, Undefine)
        return of13_resources.encode_resource_remove(edit.key, xid)


LOWERINGS: dict[int, Lowering] = {
    OPENFLOW_1_0: Lowering(
        expressible=of10.expressible,
        encode_put=of10.encode_put,
        encode_remove=of10.encode_remove,
        encode_barrier=of10.encode_barrier,
        encode_packet_out=of10.encode_packet_out,
        encode_flow_stats_request=of10.encode_flow_stats_request,
        encode_flow_stats_entry=of10.encode_flow_stats_entry,
        encode_flow_stats_reply=of10.encode_flow_stats_reply,
        decode_flow_stats=of10.decode_flow_stats,
        barrier_reply=of10.OFPT_BARRIER_REPLY,
        resource_expressible=of10.resource_expressible,
        table_full=(3, 0),
        resource_kinds=(),
        encode_role_request=of10_roles.encode_role_request,
        has_generations=False,
        encode_tables_request=partial(encode_tables_request, OPENFLOW_1_0),
    ),
    OPENFLOW_1_3: Lowering(
        expressible=of13.expressible,
        encode_put=of13.encode_put,
        encode_remove=of13.encode_remove,
        encode_barrier=of13.encode_barrier,
        encode_packet_out=of13.encode_packet_out,
        encode_flow_stats_request=of13.encode_flow_stats_request,
        encode_flow_stats_entry=of13.encode_flow_stats_entry,
        encode_flow_stats_reply=of13.encode_flow_stats_reply,
        decode_flow_stats=of13.decode_flow_stats,
        barrier_reply=of13.OFPT_BARRIER_REPLY,
        resource_expressible=of13_resources.resource_expressible,
        table_full=(5, 1),
        resource_kinds=of13_resources.KINDS,
        encode_role_request=of13_resources.encode_role_request,
        has_generations=True,
        encode_tables_request=partial(encode_tables_request, OPENFLOW_1_3),
    ),
}
