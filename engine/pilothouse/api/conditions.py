"""Conditions: their types and reasons, which are API, and the rules that every object of ours keeps (kstatus)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pilothouse.api.base import Observed
from pilothouse.api.fields import Items, Text, Timestamp

# Types. `Ready` is always present; Reconciling and Stalled stand only while True.
READY: Final = "Ready"
"""The object is accepted and what it asks for holds; of a Workflow, that its latest run succeeded."""
RECONCILING: Final = "Reconciling"
"""Work on the newest generation is under way."""
STALLED: Final = "Stalled"
"""Nothing more happens until someone changes something."""
FINISHED: Final = "Finished"
"""The latest run has ended, well or badly."""
WAITING_FOR_APPROVAL: Final = "WaitingForApproval"
"""A person is needed; the message names the approvals."""
SUSPENDED: Final = "Suspended"
"""No step starts because `spec.suspend` is true."""
FETCHED: Final = "Fetched"
"""The pack's bytes are here and match `spec.digest`."""
VERIFIED: Final = "Verified"
"""The pack's signature holds against an identity that the cluster's owner trusts."""
DECIDED: Final = "Decided"
"""A person with the right to do so has decided."""
EXPIRED: Final = "Expired"
"""The time to decide has passed."""
CONSUMED: Final = "Consumed"
"""The approved call has been carried out; it cannot be carried out again."""

# Reasons.
ACCEPTED: Final = "Accepted"
"""The spec is valid and its references resolve."""
INVALID_SPEC: Final = "InvalidSpec"
"""The spec cannot work as it is; the message says where."""
NOT_SUPPORTED: Final = "NotSupported"
"""The spec uses a field that this release does not honour yet."""
SPEC_TOO_LARGE: Final = "SpecTooLarge"
"""The spec is over 256 KiB."""
REFERENCE_NOT_FOUND: Final = "ReferenceNotFound"
"""An object that the spec names does not exist in this namespace."""
STORE_UNAVAILABLE: Final = "StoreUnavailable"
"""The database is away, or cannot be used as it is; work waits and goes on by itself."""
STORE_MISMATCH: Final = "StoreMismatch"
"""The database belongs to another installation; nothing is touched."""
RECONCILE_FAILED: Final = "ReconcileFailed"
"""The operator cannot do its work on the object; it tries again and again."""
PENDING: Final = "Pending"
"""Not looked at yet, or waiting for its turn."""
PROGRESSING: Final = "Progressing"
"""Steps are running or ready to run."""
WAITING: Final = "Waiting"
"""A time, a condition or a person is waited for."""
SUSPENDED_BY_USER: Final = "SuspendedByUser"
"""`spec.suspend` is true."""
SUCCEEDED: Final = "Succeeded"
"""The run ended well."""
FAILED: Final = "Failed"
"""A step failed and nothing handled it."""
CANCELLED: Final = "Cancelled"
"""Someone ended the run."""
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
"""The run took longer than `spec.deadline`."""
OUTCOME_UNKNOWN: Final = "OutcomeUnknown"
"""A side effect may or may not have happened; it is not repeated."""
POLICY_REFUSED: Final = "PolicyRefused"
"""An admission policy refuses the Pod."""
POLICY_MISSING: Final = "PolicyMissing"
"""The admission policy that guards approvals is absent or was changed."""
FETCH_FAILED: Final = "FetchFailed"
"""The pack's source cannot be read."""
DIGEST_MISMATCH: Final = "DigestMismatch"
"""The pack's bytes are not those that `spec.digest` names."""
SIGNATURE_INVALID: Final = "SignatureInvalid"
"""The signature does not hold, or its signer is not trusted."""
UNSIGNED_PERMITTED: Final = "UnsignedPermitted"
"""The pack has no signature that holds, and the cluster's owner permits that here."""
ANNOUNCED: Final = "Announced"
"""The request is guarded by the admission policy and may be decided."""
APPROVED: Final = "Approved"
"""A person said yes."""
DENIED: Final = "Denied"
"""A person said no."""
MARKED_DONE: Final = "MarkedDone"
"""A person said what came of a call whose outcome was unknown."""
TIMED_OUT: Final = "TimedOut"
"""Nobody decided before `expiresAt`."""

ABNORMAL_TRUE: Final = frozenset({RECONCILING, STALLED})


class Condition(Observed):
    """One condition, as in all of Kubernetes."""

    type: Annotated[str, Text(64, 1)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Text(64)] | None = None
    message: Annotated[str, Text(1024)] | None = None
    last_transition_time: Timestamp | None = None
    observed_generation: int | None = None


Conditions = Annotated[tuple[Condition, ...], Items(16, key="type")]


def check_object(obj: dict[str, Any]) -> list[str]:
    """The kstatus rules that an object breaks, as sentences; empty when it keeps them all.

    An object nobody has looked at yet (`observedGeneration` of -1, or no status) breaks none.
    """
    status = obj.get("status") or {}
    observed = status.get("observedGeneration", -1)
    if observed == -1 and not status.get("conditions"):
        return []
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    generation = obj.get("metadata", {}).get("generation", 0)
    states = {condition.get("type"): condition.get("status") for condition in conditions}
    problems = [*_check_states(states), *_check_each(conditions, generation)]
    if len(states) != len(conditions):
        problems.append("two conditions have the same type")
    if observed > generation:
        problems.append(f"status.observedGeneration {observed} is ahead of metadata.generation {generation}")
    return problems


def _check_states(states: dict[str | None, str | None]) -> list[str]:
    problems = []
    if READY not in states:
        problems.append("Ready is missing")
    problems += [
        f"{name} is {states[name]}, but may stand only while True"
        for name in sorted(ABNORMAL_TRUE & states.keys())
        if states[name] != "True"
    ]
    abnormal = sorted(name for name in ABNORMAL_TRUE if states.get(name) == "True")
    if len(abnormal) > 1:
        problems.append("Reconciling and Stalled are both True")
    if abnormal and states.get(READY) == "True":
        problems.append(f"Ready is True beside {' and '.join(abnormal)}")
    return problems


def _check_each(conditions: list[dict[str, Any]], generation: int) -> list[str]:
    problems = []
    for condition in conditions:
        name = condition.get("type")
        if condition.get("status") not in ("True", "False", "Unknown"):
            problems.append(f"{name} has the status {condition.get('status')}")
        if not condition.get("reason"):
            problems.append(f"{name} has no reason")
        if condition.get("observedGeneration", 0) > generation:
            problems.append(f"{name} has observed a generation that does not exist yet")
    return problems
