"""What a Pod's status proves of its attempt. Success needs proof; absence is never success.

Pure: a Pod as the API gives it, and the log of its main container, to what is known.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.states import AttemptState
from pilothouse.workflows.commands import frames
from pilothouse.workflows.commands.outcome import RESERVED, CommandOutcome, outcome, read_log
from pilothouse_operator.commandpod import FILES
from pilothouse_operator.pods import AGENT, COMMAND, GATE, MAIN, STOP, STOP_SECONDS
from pilothouse_operator.waiting import sentence, waiting

_REJECTED = frozenset(
    {"NodeAffinity", "NodePorts", "NodeShutdown", "PodOSNotSupported", "TaintToleration", "UnexpectedAdmissionError"}
)
"""Reasons with which a kubelet turns a Pod away before anything of it runs; besides these, all that begin OutOf."""

_CANNOT_START = frozenset({"ContainerCannotRun", "CreateContainerError", "RunContainerError", "StartError"})
"""Reasons of a container that ended before its program began."""

_OOM = "OOMKilled"
_LOST_SIGHT = "ContainerStatusUnknown"


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the operator ends a Pod: for a failure, or because the run is to end."""

    failure: Failure | None

    def note(self) -> str:
        """As `STOP` has it."""
        return json.dumps({} if self.failure is None else self.failure.to_json())


@dataclass(frozen=True, slots=True)
class Seen:
    """A Pod in its role, read. `begun`: its main container ran, or may have; `terminated` is that container's end."""

    pod: Mapping[str, Any]
    role: str
    phase: str
    reason: str
    message: str
    terminated: Mapping[str, Any] | None
    running_since: datetime | None
    begun: bool
    held_up: bool
    """Its main container has yet to start, as its kubelet says."""
    waiting: str
    unprepared: str
    """Why the container that lays the step's files failed; empty where it did not."""

    @property
    def over(self) -> bool:
        """Nothing of it runs any more, and nothing will."""
        return self.phase in ("Succeeded", "Failed") or self.terminated is not None

    @property
    def ended(self) -> bool:
        """Its kubelet says of every container that it has ended."""
        status = self.pod.get("status", {})
        states = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
        return bool(states) and all("terminated" in each.get("state", {}) for each in states)

    @property
    def gated(self) -> bool:
        """It cannot have run: the operator has yet to let it."""
        return any(gate["name"] == GATE for gate in self.pod["spec"].get("schedulingGates", []))

    @property
    def ended_from_outside(self) -> bool:
        """Its main container did not come to its end by itself: the kubelet ended the Pod, or somebody deleted it, or
        nobody knows. An exit code says nothing of the work then; some programs end with 0 when they are asked to."""
        ended = self.terminated or {}
        return bool(self.reason) or ended.get("reason") == _LOST_SIGHT or _deleted_before(self.pod, ended)

    @property
    def stopping(self) -> bool:
        """The operator ends it."""
        limit = self.pod["spec"].get("activeDeadlineSeconds")
        return limit is not None and limit <= STOP_SECONDS

    @property
    def stop(self) -> "Stop | None":
        """Why the operator ends it; None where it does not, or where nobody can tell any more."""
        return _stop(_annotations(self.pod).get(STOP, "")) if self.stopping else None

    @property
    def created_at(self) -> datetime:
        return _time(self.pod["metadata"]["creationTimestamp"])


def see(pod: Mapping[str, Any], role: str) -> Seen:
    """Reads a Pod of ours. Its role is what its attempt's step says; its labels and annotations are anybody's."""
    status = pod.get("status", {})
    main = _container(status, MAIN[role])
    state = main.get("state", {})
    terminated = state.get("terminated") or main.get("lastState", {}).get("terminated")
    running = state.get("running")
    reason = status.get("reason", "")
    return Seen(
        pod=pod,
        role=role,
        phase=status.get("phase", "Pending"),
        reason=reason,
        message=status.get("message", ""),
        terminated=terminated,
        running_since=_time(running["startedAt"]) if running and running.get("startedAt") else None,
        begun=_begun(status, main, terminated, reason),
        waiting=waiting(status),
        held_up="waiting" in main.get("state", {}) and not terminated,
        unprepared=_unprepared(status),
    )


def _begun(status: Mapping[str, Any], main: Mapping[str, Any], terminated: Any, reason: str) -> bool:
    """Whether the main container ran or may have run. Not: nobody took the Pod, a kubelet turned it away, or the
    container's own state says so."""
    if terminated:
        return terminated.get("reason") not in _CANNOT_START
    if "running" in main.get("state", {}):
        return True
    if reason in _REJECTED or reason.startswith("OutOf") or not status.get("startTime"):
        return False
    waits = "waiting" in main.get("state", {})
    return status.get("phase") in ("Succeeded", "Failed", "Unknown") and not waits


def _unprepared(status: Mapping[str, Any]) -> str:
    for entry in status.get("initContainerStatuses", []):
        ended = entry.get("state", {}).get("terminated")
        if entry["name"] == FILES and ended and ended.get("exitCode"):
            return str(ended.get("message") or ended.get("reason") or "no reason is given").strip()[:500]
    return ""


def _container(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = (entry for entry in status.get("containerStatuses", []) if entry["name"] == name)
    return next(found, {})


def result_of(seen: Seen, log: bytes | None) -> CommandOutcome:
    """The outcome of a Pod that is over. `log` is that of a command, None where there is none to be had; an agent
    records its outcome itself, so of its Pod all that is known is that it is over."""
    found = _proved(seen, log)
    stop = seen.stop
    if stop is None or found.state not in _UNFINISHED:
        return found
    state = AttemptState.CANCELLED if stop.failure is None else AttemptState.FAILED
    return CommandOutcome(state, found.outputs, stop.failure)


_UNFINISHED = frozenset({AttemptState.LOST, AttemptState.NEVER_STARTED, AttemptState.CANCELLED})


def _proved(seen: Seen, log: bytes | None) -> CommandOutcome:
    if not seen.begun:
        return _never_started(seen)
    if seen.role == AGENT:
        return _killed(seen) or CommandOutcome(AttemptState.LOST, failure=Failure(FailureCode.ENV, _how(seen)))
    return _framed(seen, log) if seen.role == COMMAND else _plain(seen, log)


def _never_started(seen: Seen) -> CommandOutcome:
    ended = seen.terminated or {}
    if ended.get("reason") in _CANNOT_START:
        text = f"the container cannot start: {sentence(ended['reason'], ended.get('message', ''))}"
        return CommandOutcome(AttemptState.FAILED, failure=Failure(FailureCode.ENV, text))
    if seen.unprepared:
        text = f"the step's files cannot be laid: {seen.unprepared}"
        return CommandOutcome(AttemptState.FAILED, failure=Failure(FailureCode.ENV, text))
    text = f"its Pod was turned away: {sentence(seen.reason or 'no reason is given', seen.message)}"
    return CommandOutcome(AttemptState.NEVER_STARTED, failure=Failure(FailureCode.ENV, text))


def _framed(seen: Seen, log: bytes | None) -> CommandOutcome:
    """Under our entry point: the log tells how the command ended, or nobody knows. One that was asked to end, and not
    by us, did not come to its end by itself, however orderly it went."""
    read = read_log(log or b"")
    told = None if read.end is None else outcome(read)
    if told is not None and (told.state is not AttemptState.CANCELLED or seen.stopping):
        return told
    found = _killed(seen) or CommandOutcome(AttemptState.LOST, failure=Failure(FailureCode.UNK, _how(seen)))
    return CommandOutcome(found.state, {} if told is None else told.outputs, found.failure)


def _plain(seen: Seen, log: bytes | None) -> CommandOutcome:
    """In the user's image: the kubelet's word on the container is all there is."""
    if seen.terminated is None:
        return CommandOutcome(AttemptState.LOST, failure=Failure(FailureCode.UNK, _how(seen)))
    code = seen.terminated.get("exitCode")
    outputs: dict[str, Any] = {"exitCode": code, "stdout": _tail(log or b""), "stderr": ""}
    if (killed := _killed(seen)) is not None:
        return CommandOutcome(killed.state, outputs, killed.failure)
    if seen.ended_from_outside:
        return CommandOutcome(AttemptState.LOST, outputs, Failure(FailureCode.UNK, _how(seen)))
    if code != 0:
        failure = Failure(FailureCode.EXE, f"the container ended with exit code {code}{_last_words(outputs)}")
        return CommandOutcome(AttemptState.FAILED, outputs, failure)
    if log is None:
        return CommandOutcome(
            AttemptState.LOST, failure=Failure(FailureCode.UNK, "its log, which is its output, is gone")
        )
    own, problem = _own_outputs(seen.terminated.get("message", ""))
    return CommandOutcome(AttemptState.FAILED if problem else AttemptState.SUCCEEDED, own | outputs, problem)


def _killed(seen: Seen) -> CommandOutcome | None:
    """The failure of a container that the kernel or the kubelet ended for a reason that is known."""
    if seen.terminated is not None and seen.terminated.get("reason") == _OOM:
        text = "the container took more memory than its limit and was ended; raise pod.resources.limits.memory"
        return CommandOutcome(AttemptState.FAILED, failure=Failure(FailureCode.RES, text, _OOM))
    if seen.reason == "DeadlineExceeded" and not seen.stopping:
        text = "the Pod reached the step's timeout and was ended"
        return CommandOutcome(AttemptState.FAILED, failure=Failure(FailureCode.TMO, text))
    return None


def _deleted_before(pod: Mapping[str, Any], ended: Mapping[str, Any]) -> bool:
    """Whether the Pod was asked to end before its container did."""
    metadata = pod["metadata"]
    if "deletionTimestamp" not in metadata:
        return False
    asked = _time(metadata["deletionTimestamp"]).timestamp() - metadata.get("deletionGracePeriodSeconds", 0)
    return "finishedAt" not in ended or _time(ended["finishedAt"]).timestamp() >= asked


def _how(seen: Seen) -> str:
    """How the Pod ended, for people."""
    if seen.reason:
        return f"its Pod was ended: {sentence(seen.reason, seen.message)}"
    for condition in seen.pod.get("status", {}).get("conditions", []):
        if condition["type"] == "DisruptionTarget" and condition["status"] == "True":
            return f"its Pod was ended: {sentence(condition.get('reason', ''), condition.get('message', ''))}"
    if "deletionTimestamp" in seen.pod["metadata"]:
        return "somebody deleted its Pod"
    ended = seen.terminated or {}
    return f"its container ended: {ended.get('reason', 'Error')}, exit code {ended.get('exitCode')}"


def _own_outputs(text: str) -> tuple[dict[str, Any], Failure | None]:
    """The termination message, if it is a JSON object; other texts are no outputs."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}, None
    if not isinstance(value, dict):
        return {}, None
    if taken := sorted(set(RESERVED) & value.keys()):
        return {}, Failure(FailureCode.VAL, f"the termination message may not set `{taken[0]}`; use another name")
    return value, None


def _tail(log: bytes) -> str:
    return log[-frames.TAIL :].decode("utf-8", "replace").rstrip("\n")


def _last_words(outputs: Mapping[str, Any]) -> str:
    lines = str(outputs["stdout"]).strip().splitlines()
    return f": {lines[-1][:500]}" if lines else ""


def _stop(note: str) -> Stop | None:
    """What a `STOP` says; None where somebody garbled it."""
    try:
        body = json.loads(note)
        return Stop(Failure.from_json(body) if body else None) if isinstance(body, dict) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _annotations(pod: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    return found


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
