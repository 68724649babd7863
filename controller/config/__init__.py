"""The operator's policy file: read, checked as a whole, and kept as frozen values."""

from controller.config.faults import PolicyError, PolicyInvalid
from controller.config.load import load_policy
from controller.config.multicast_settings import Querier, RouterPorts
from controller.config.policy import Policy, Role, Rule, Tenant
from controller.config.settings import Discovery, Limits, Multicast, Unicast
from controller.config.terms import HostTerm, MacAddress, Prefix, SwitchPort

__all__ = [
    "Discovery",
    "HostTerm",
    "Limits",
    "MacAddress",
    "Multicast",
    "Policy",
    "PolicyError",
    "PolicyInvalid",
    "Prefix",
    "Querier",
    "Role",
    "RouterPorts",
    "Rule",
    "SwitchPort",
    "Tenant",
    "Unicast",
    "load_policy",
]
