"""The policy that controllers share: the leader's store has it, and it counts whatever the file of a machine says.

A policy file that the leader reads anew is in force when the store has it. Who takes over goes by what is there, with
the sections of its own file that are a machine's alone (`controller.config.shared_text`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from apps.fabric_file import FabricFile
from apps.policy_file import PolicyReading
from controller.cluster.effects import TellOperators
from controller.cluster.engine import (
    Committed,
    ConditionFailed,
    KeyCondition,
    KeyPage,
    PutKey,
    ReadPage,
    Reply,
    Request,
    Transaction,
)
from controller.cluster.keys import Keys, read_object
from controller.config.faults import PolicyInvalid, describe
from controller.config.load import load_policy
from controller.config.shared_text import digest_of, merged_text, shared_text
from controller.snapshot.events import Severity, State

POLICY_BYTES_BOUND = 1_400_000
"""Bytes of a policy in the store, whose requests are not larger than about that."""


class NotLeading(Exception):  # noqa: N818
    """The store takes no write of this epoch: another one leads."""


def record_of(text: str) -> str:
    """Return the value of the key `policy` for a policy file's text; ValueError where it has no sections."""
    shared = shared_text(text)
    return json.dumps({"digest": digest_of(shared), "text": shared}, ensure_ascii=False)


def read_record(value: str) -> str | None:
    """Return the text of common sections that the key `policy` has; None where it makes no sense."""
    try:
        found = read_object(value)
        text, digest = found["text"], found["digest"]
    except (ValueError, KeyError, TypeError):
        return None
    return text if type(text) is str and digest == digest_of(text) else None


class SharedPolicy:
    """What one controller does so that all go by one policy.

    Parameters
    ----------
    ask
        Has the store answer; on a thread that may wait.
    fabric
        Whose policy it is.
    path
        The controller's own file.
    own
        Returns what that says.
    tell
        Tells operators; any thread calls it.

    Attributes
    ----------
    fence
        What the leader's writes have as a condition; None while another one leads.
    """

    def __init__(
        self,
        ask: Callable[[Request], Reply],
        fabric: str,
        path: Path | None,
        own: Callable[[], PolicyReading],
        tell: Callable[[TellOperators], None],
    ) -> None:
        self.fence: KeyCondition | None = None
        self._ask = ask
        self._key = Keys(fabric).policy
        self._path = path
        self._own = own
        self._tell = tell
        self._differs = False
        self._told = -1

    def admits(self, reading: PolicyReading) -> str | None:
        """Have the store know a policy; return why it does not yet, None where it does, or another one leads."""
        if self.fence is None:
            return None
        try:
            self._put(reading, self.fence)
        except NotLeading:
            why = "this controller leads no more"
        except TimeoutError as error:
            why = f"the cluster's store does not take it ({error})"
        except ValueError as error:
            why = str(error)
        else:
            return None
        if self._told != reading.number:
            self._told = reading.number
            text = f"The policy file is not in force yet, and the policy of before stays so: {why}."
            self._tell(TellOperators("policy-unshared", text, Severity.CRITICAL))
        return why

    def taken_over(self, fence: KeyCondition) -> PolicyReading | None:
        """Return the policy to go by from now on, None where that is the own file's; the first leader has it known.

        TimeoutError where the store does not answer, `NotLeading` where another one leads.
        """
        shared, own = self._read(), self._own()
        if shared is None:
            try:
                self._put(own, fence)
            except ValueError as error:
                self._tell(
                    TellOperators(
                        "policy-unshared", f"No other controller knows this policy: {error}.", Severity.CRITICAL
                    )
                )
        self.fence = fence
        if shared is None or shared == shared_text(own.text):
            return None
        text = merged_text(own.text, shared)
        try:
            policy = load_policy(text, "the policy that the controllers share", FabricFile(self._path).read)
        except PolicyInvalid as fault:
            why = describe(fault.errors[0], "the policy that the controllers share")
            text = f"This controller goes by its own policy file, for it cannot go by what the others share: {why}."
            self._tell(TellOperators("policy-unreadable", text, Severity.CRITICAL))
            return None
        return own._replace(policy=policy, text=text, errors=())

    def renewed(self, in_force: PolicyReading, fence: KeyCondition) -> None:
        """Have a store that has lost all know the policy that is in force; raises as `taken_over`."""
        self.fence = fence
        self._put(in_force, fence)

    def look(self) -> None:
        """Tell where the own file begins, or ceases, to say something else than the policy that is shared."""
        try:
            shared = self._read()
        except TimeoutError:
            return
        own = self._own()
        if shared is None or own.errors or (shared != shared_text(own.text)) == self._differs:
            return
        self._differs = not self._differs
        if self._differs:
            text = (
                "The policy file of this controller says something else than the policy that the controllers share."
            )
            text += " That one counts" + (", until `vsrt do reload` has the file count here." if self.fence else ".")
            self._tell(TellOperators("policy-differs", text, Severity.WARNING, State.RAISED))
        else:
            text = "The policy file of this controller says what the policy says that the controllers share."
            self._tell(TellOperators("policy-differs", text, Severity.INFO, State.CLEARED))

    def _read(self) -> str | None:
        reply = self._ask(ReadPage(self._key))
        if type(reply) is not KeyPage:
            raise TimeoutError(_why(reply))
        return next((read_record(held.value) for held in reply.held if held.key == self._key), None)

    def _put(self, reading: PolicyReading, fence: KeyCondition) -> None:
        value = record_of(reading.text)
        if len(value.encode()) > POLICY_BYTES_BOUND:
            raise ValueError(f"without its own sections it is larger than {POLICY_BYTES_BOUND} bytes")
        reply = self._ask(Transaction((fence,), (PutKey(self._key, value),), True))
        if type(reply) is ConditionFailed:
            raise NotLeading
        if type(reply) is not Committed:
            raise TimeoutError(_why(reply))


def _why(reply: Reply) -> str:
    return str(getattr(reply, "why", type(reply).__name__)).rstrip(".")
