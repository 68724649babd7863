"""Which role this controller has at each switch beside others: asked for, confirmed, refused and lost.

A switch is ours to write where nobody asked for a role, or where it has confirmed the one that it was asked for, and
that is not slave. Until then it is as one without a connection for those who have flow entries there. When it becomes
ours it is read, for others may have changed it.
"""

from __future__ import annotations

from typing import Protocol

from controller.datapath.xids import Xids
from controller.effects import Effect, RequestRole, RoleDenied
from controller.events import ControllerRole, EditFailed, RoleReplied, RoleWanted
from controller.rules.switch_state import Datapath
from controller.rules.timeouts import Timeouts

ROLE_TIMEOUT_S = 5.0
"""How long a switch has to answer a role request; it is asked again then."""

CONFIRM_S = 1.0
"""How often a switch whose master we are is asked whether we still are: it does not say so by itself."""

IS_SLAVE = (1, 10)
"""OFPBRC_IS_SLAVE: all that a master hears by itself of another one that takes its place."""

IS_SLAVE_1_0 = (1, 5)
"""OFPBRC_EPERM: the same in OpenFlow 1.0."""

STALE = (11, 0)
"""OFPRRFC_STALE: the switch knows of a later generation."""


class Connections(Protocol):
    """Who owns the connections."""

    def open(self, datapath: Datapath, now: float) -> None:
        """Begin to write to a switch, which is read first."""

    def close(self, datapath: Datapath) -> None:
        """Write to a switch no more."""

    def tell(self, effect: Effect) -> None:
        """Have something sent."""

    def notice(self, datapath: Datapath, kind: str, text: str, now: float, **particulars: object) -> None:
        """Give notice of what befell a switch."""


class Roles:
    """The roles at all switches; none is asked for, and nothing sent, before `want`."""

    def __init__(self, connections: Connections, xids: Xids) -> None:
        self.timeouts: Timeouts[int] = Timeouts(ROLE_TIMEOUT_S)
        self.confirms: Timeouts[int] = Timeouts(CONFIRM_S)
        self._connections = connections
        self._xids = xids
        self._wanted: RoleWanted | None = None
        self._wanted_at: dict[int, RoleWanted] = {}

    def want(self, wanted: RoleWanted) -> None:
        """Ask for a role from here on: at one switch, or at all, whatever was wanted at some."""
        if wanted.dpid is not None:
            self._wanted_at[wanted.dpid] = wanted
        else:
            self._wanted = wanted
            self._wanted_at.clear()

    def use(self, datapath: Datapath, now: float) -> None:
        """Ask a connected switch for what is wanted now, unless it has confirmed just that."""
        before = datapath.wanted
        datapath.wanted = wanted = self._wanted_at.get(datapath.dpid, self._wanted)
        if wanted is None:
            return
        is_same = before is not None and before[:2] == wanted[:2]
        if is_same and datapath.role == wanted.role:
            return
        self._connections.close(datapath)
        self._ask(datapath, wanted.role, wanted.generation_id, now)

    def _ask(self, datapath: Datapath, role: ControllerRole | None, generation_id: int, now: float) -> None:
        self._confirm_no_more(datapath)
        datapath.role, datapath.role_xid = None, self._xids.take()
        datapath.role_generation_id = None if role is None else generation_id
        self._connections.tell(RequestRole(datapath.dpid, datapath.role_xid, role, generation_id))
        self.timeouts.start(datapath.dpid, now)

    def ended(self, datapath: Datapath) -> None:
        """Take it that a connection has ended: the next one begins without a role."""
        self.timeouts.cancel(datapath.dpid)
        self._confirm_no_more(datapath)
        datapath.wanted = datapath.role = datapath.role_xid = datapath.generation_id = None
        datapath.role_generation_id = None

    def _confirm_no_more(self, datapath: Datapath) -> None:
        self.confirms.cancel(datapath.dpid)
        datapath.confirm_xid = None

    def confirm(self, datapath: Datapath, now: float) -> None:
        """Ask a switch whether we are still its master."""
        datapath.confirm_xid = self._xids.take()
        self._connections.tell(RequestRole(datapath.dpid, datapath.confirm_xid, None, 0))
        self.confirms.start(datapath.dpid, now)

    def replied(self, datapath: Datapath, reply: RoleReplied, now: float) -> bool:
        """Take a switch's word; False where nobody asked for it."""
        if datapath.confirm_xid == reply.xid:
            datapath.confirm_xid = None
            if reply.role != datapath.role:
                self._lost(datapath, reply, now)
            return True
        if datapath.role_xid != reply.xid:
            return False
        self.timeouts.cancel(datapath.dpid)
        datapath.role_xid = None
        datapath.role, datapath.generation_id = reply.role, reply.generation_id
        wanted = datapath.wanted
        if wanted is not None and reply.role != wanted.role:
            self._denied(datapath, wanted, reply, now)
        elif datapath.is_ours:
            if reply.role == ControllerRole.MASTER and _has_generations(datapath):
                self.confirms.start(datapath.dpid, now)
            self._connections.open(datapath, now)
        return True

    def _denied(self, datapath: Datapath, wanted: RoleWanted, reply: RoleReplied, now: float) -> None:
        """Tell that a switch has us in another role; who wants to be slave is one in the switch's own generation."""
        generation_id, asked = reply.generation_id, datapath.role_generation_id
        self._connections.tell(RoleDenied(datapath.dpid, generation_id))
        if wanted.role is ControllerRole.SLAVE and generation_id is not None and asked is None:
            self._ask(datapath, ControllerRole.SLAVE, generation_id, now)

    def _lost(self, datapath: Datapath, reply: RoleReplied, now: float) -> None:
        """Write no more to a switch that says it has another master."""
        datapath.role, datapath.generation_id = reply.role, reply.generation_id
        self._confirm_no_more(datapath)
        text = f"Switch {datapath.dpid} has another controller as master."
        self._connections.notice(datapath, "role-lost", text, now, role=ControllerRole.MASTER.name)
        self._connections.tell(RoleDenied(datapath.dpid, reply.generation_id))
        self._connections.close(datapath)

    def refused(self, datapath: Datapath, error: EditFailed, now: float) -> bool:
        """Take it that a switch refused a role, or said that ours is slave; False where the error says neither."""
        wanted, dpid = datapath.wanted, datapath.dpid
        if wanted is None:
            return False
        if error.xid == datapath.role_xid:
            self.timeouts.cancel(dpid)
            datapath.role_xid = None
            is_stale = (error.type, error.code) == STALE
            why = f"with OpenFlow error {error.type}/{error.code}"
            if is_stale:
                why = f"in generation {wanted.generation_id}, for it knows of a later one"
            text = f"Switch {dpid} refused the role {wanted.role.name.lower()} {why}."
            self._connections.notice(datapath, "role-refused", text, now, role=wanted.role.name, stale=is_stale)
            if is_stale:
                self._ask(datapath, None, 0, now)
            else:
                self._connections.tell(RoleDenied(dpid, None))
            return True
        has_generations = _has_generations(datapath)
        if (error.type, error.code) == (IS_SLAVE if has_generations else IS_SLAVE_1_0) and datapath.is_ours:
            self._confirm_no_more(datapath)
            datapath.role = ControllerRole.SLAVE
            text = f"Switch {dpid} takes no edits of a slave: another controller is master there."
            self._connections.notice(datapath, "role-lost", text, now, role=wanted.role.name)
            self._connections.close(datapath)
            if has_generations:
                self._ask(datapath, None, 0, now)
            else:
                self._connections.tell(RoleDenied(dpid, None))
            return True
        return False

    def overdue(self, datapath: Datapath, now: float) -> None:
        """Ask a switch again that did not answer."""
        text = f"Switch {datapath.dpid} did not answer a role request: it is asked again."
        self._connections.notice(datapath, "role-timeout", text, now)
        if datapath.wanted is not None:
            self._ask(datapath, datapath.wanted.role, datapath.wanted.generation_id, now)


def _has_generations(datapath: Datapath) -> bool:
    """Tell whether a switch knows generations: those of OpenFlow 1.0 do not, and do not tell which role we have."""
    lowerings = [part.lowering for part in datapath.attached_parts()]
    return bool(lowerings) and lowerings[0] is not None and lowerings[0].has_generations
