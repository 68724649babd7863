"""Who may receive, who may send, and who may be a router: the policy applied to hosts and groups."""

from controller.admission.admission import Admission, explain_router
from controller.admission.audit import AuditLines, audit_record
from controller.admission.host import Decision, Host, HostLike
from controller.config.policy import Role

__all__ = ["Admission", "AuditLines", "Decision", "Host", "HostLike", "Role", "audit_record", "explain_router"]
