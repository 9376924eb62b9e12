"""What a Pod's status proves. Success needs exit code 0 and its output; nothing else is one."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pilothouse.records.failures import Failure, FailureCode
from pilothouse_operator.outcome import Seen, Stop, result_of
from pilothouse_operator.outcome import see as see_as
from pilothouse_operator.pods import AGENT, COMMAND, GATE, IMAGE, MAIN, STOP, STOP_SECONDS
from tests.operator.kubelet import framed

RUNNING = {"running": {"startedAt": "2027-01-31T12:00:05Z"}}
WAITING = {"waiting": {"reason": "ContainerCreating"}}
TOO_LONG = Failure(FailureCode.TMO, "too long")


def ended(code: int = 0, reason: str = "", **more: Any) -> dict[str, Any]:
    """The state of a container that ended."""
    return {"terminated": {"exitCode": code, "reason": reason or ("Error" if code else "Completed"), **more}}


def pod(
    role: str = COMMAND,
    phase: str = "Failed",
    main: dict[str, Any] | None = None,
    *,
    status: dict[str, Any] | None = None,
    stop: Failure | bool = False,
    **metadata: Any,
) -> dict[str, Any]:
    """A Pod that a node took. `main` is the state of its main container, None where the list of states is empty.
    `stop`: the operator ends it, with that failure or with none."""
    states = [] if main is None else [{"name": MAIN[role], "state": main}]
    said = {"phase": phase, "startTime": "2027-01-31T12:00:00Z", "containerStatuses": states, **(status or {})}
    annotations = {} if stop is False else {STOP: Stop(stop if isinstance(stop, Failure) else None).note()}
    return {
        "metadata": {
            "name": "p",
            "annotations": annotations,
            "creationTimestamp": "2027-01-31T11:59:59Z",
            **metadata,
        },
        "spec": {"containers": [{"name": role}]} | ({} if stop is False else {"activeDeadlineSeconds": STOP_SECONDS}),
        "status": {name: value for name, value in said.items() if value is not None},
    }


def see(pod: dict[str, Any]) -> Seen:
    """The Pod, in its role."""
    return see_as(pod, pod["spec"]["containers"][0]["name"])


def verdict(pod: dict[str, Any], log: bytes | None = b"") -> str:
    """The attempt's state and the code of its failure."""
    seen = see(pod)
    assert seen.over
    result = result_of(seen, log)
    return " ".join([result.state.value, *([result.failure.code.value] if result.failure else [])])


EVICTED: dict[str, Any] = {"reason": "Evicted", "message": "The node was low on resource: memory."}
DEADLINE: dict[str, Any] = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}
DELETED: dict[str, Any] = {"deletionTimestamp": "2027-01-31T12:01:30Z", "deletionGracePeriodSeconds": 30}
DRAINED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "evicting"}
HALF = b'{"start":{"pid":7,"at":0.0}}\n{"out":"half"}\n'
STOPPED = framed("half", code=None, signal=15, stopped=True)

COMMANDS: list[tuple[str, dict[str, Any], bytes | None, str]] = [
    ("it succeeded", pod(phase="Succeeded", main=ended()), framed(), "Succeeded"),
    ("it ended while the Pod still runs", pod(phase="Running", main=ended()), framed(), "Succeeded"),
    ("it exited with 3", pod(main=ended(3)), framed(code=3), "Failed F-EXE"),
    ("its own timeout", pod(main=ended(1)), framed(code=None, signal=9, timed_out=True), "Failed F-TMO"),
    ("exit code 0 without a log", pod(phase="Succeeded", main=ended()), None, "Lost F-UNK"),
    ("exit code 0 with half a log", pod(phase="Succeeded", main=ended()), HALF, "Lost F-UNK"),
    ("an empty list of containers", pod(), HALF, "Lost F-UNK"),
    ("an empty list, yet the log is whole", pod(), framed(), "Succeeded"),
    ("no list of containers", pod(status={"containerStatuses": None}), HALF, "Lost F-UNK"),
    ("Failed with exit code 0", pod(main=ended()), HALF, "Lost F-UNK"),
    ("evicted before it started", pod(main=WAITING, status=EVICTED), None, "NeverStarted F-ENV"),
    ("evicted before a node had it", pod(status={**EVICTED, "startTime": None}), None, "NeverStarted F-ENV"),
    ("evicted after it started", pod(main=ended(137), status=EVICTED), HALF, "Lost F-UNK"),
    ("evicted, and nobody says of what", pod(status=EVICTED), HALF, "Lost F-UNK"),
    ("evicted after its end", pod(main=ended(), status=EVICTED), framed(), "Succeeded"),
    ("too much memory", pod(main=ended(137, "OOMKilled")), HALF, "Failed F-RES"),
    ("too much memory, told by the entry point", pod(main=ended(137, "OOMKilled")), framed(code=1), "Failed F-EXE"),
    ("the last deadline", pod(main=ended(137), status=DEADLINE), HALF, "Failed F-TMO"),
    ("stopped by us", pod(main=ended(137), status=DEADLINE, stop=True), STOPPED, "Cancelled"),
    ("stopped by us, and killed", pod(main=ended(137), status=DEADLINE, stop=True), HALF, "Cancelled"),
    ("stopped by us for a reason", pod(main=ended(137), status=DEADLINE, stop=TOO_LONG), STOPPED, "Failed F-TMO"),
    ("killed by us for a reason", pod(main=ended(137), status=DEADLINE, stop=TOO_LONG), HALF, "Failed F-TMO"),
    ("stopped before it started", pod(main=WAITING, status=DEADLINE, stop=TOO_LONG), None, "Failed F-TMO"),
    ("cancelled before it started", pod(main=WAITING, status=DEADLINE, stop=True), None, "Cancelled"),
    ("stopped too late", pod(phase="Succeeded", main=ended(), stop=TOO_LONG), framed(), "Succeeded"),
    ("failed before the stop came", pod(main=ended(3), stop=TOO_LONG), framed(code=3), "Failed F-EXE"),
    ("too much memory while stopped", pod(main=ended(137, "OOMKilled"), stop=True), HALF, "Failed F-RES"),
    ("its program is missing", pod(main=ended(128, "StartError", message="no such file")), None, "Failed F-ENV"),
    ("the runtime failed", pod(main=ended(128, "ContainerCannotRun")), None, "Failed F-ENV"),
    ("no room on the node", pod(status={"reason": "OutOfcpu", "startTime": None}), None, "NeverStarted F-ENV"),
    ("a node of another kind", pod(status={"reason": "NodeAffinity"}), None, "NeverStarted F-ENV"),
    ("a node that shuts down", pod(status={"reason": "NodeShutdown"}), None, "NeverStarted F-ENV"),
    ("evicted, and it ended in time", pod(main=ended(143), status=EVICTED), STOPPED, "Lost F-UNK"),
    ("deleted, and it ended in time", pod(main=ended(143), **DELETED), STOPPED, "Lost F-UNK"),
    ("the last deadline, and it ended in time", pod(main=ended(143), status=DEADLINE), STOPPED, "Failed F-TMO"),
    ("shut down while it ran", pod(main=ended(137), status={"reason": "Terminated"}), HALF, "Lost F-UNK"),
]


@pytest.mark.parametrize(
    ("pod", "log", "expected"), [each[1:] for each in COMMANDS], ids=[each[0] for each in COMMANDS]
)
def test_a_command_in_our_image(pod: dict[str, Any], log: bytes | None, expected: str) -> None:
    assert verdict(pod, log) == expected


IMAGES: list[tuple[str, dict[str, Any], bytes | None, str]] = [
    ("it succeeded", pod(IMAGE, "Succeeded", ended()), b"out", "Succeeded"),
    ("its log is gone", pod(IMAGE, "Succeeded", ended()), None, "Lost F-UNK"),
    ("it exited with 3", pod(IMAGE, main=ended(3)), b"out", "Failed F-EXE"),
    ("it exited with 3, and its log is gone", pod(IMAGE, main=ended(3)), None, "Failed F-EXE"),
    ("an empty list of containers", pod(IMAGE), b"out", "Lost F-UNK"),
    ("an empty list of a Pod that succeeded", pod(IMAGE, "Succeeded"), b"out", "Lost F-UNK"),
    ("Failed with exit code 0", pod(IMAGE, main=ended(), status=EVICTED), b"out", "Lost F-UNK"),
    ("evicted", pod(IMAGE, main=ended(137), status=EVICTED), b"out", "Lost F-UNK"),
    (
        "deleted while it ran",
        pod(IMAGE, main=ended(0, finishedAt="2027-01-31T12:01:10Z"), **DELETED),
        b"",
        "Lost F-UNK",
    ),
    (
        "deleted after its end",
        pod(IMAGE, "Succeeded", ended(0, finishedAt="2027-01-31T12:00:59Z"), **DELETED),
        b"",
        "Succeeded",
    ),
    ("deleted, and nobody knows when it ended", pod(IMAGE, main=ended(143), **DELETED), b"", "Lost F-UNK"),
    ("the kubelet lost sight of it", pod(IMAGE, main=ended(137, "ContainerStatusUnknown")), b"", "Lost F-UNK"),
    ("too much memory", pod(IMAGE, main=ended(137, "OOMKilled")), b"", "Failed F-RES"),
    ("the last deadline", pod(IMAGE, main=ended(137), status=DEADLINE), b"", "Failed F-TMO"),
    ("stopped by us", pod(IMAGE, main=ended(143), status=DEADLINE, stop=True), b"", "Cancelled"),
    ("stopped by us, and it exits with 0", pod(IMAGE, main=ended(0), status=DEADLINE, stop=True), b"", "Cancelled"),
    ("stopped by us for a reason", pod(IMAGE, main=ended(143), status=DEADLINE, stop=TOO_LONG), b"", "Failed F-TMO"),
    ("stopped too late", pod(IMAGE, "Succeeded", ended(), stop=TOO_LONG), b"", "Succeeded"),
    ("its outputs", pod(IMAGE, "Succeeded", ended(message='{"n": 1}')), b"", "Succeeded"),
    ("a message that is no object", pod(IMAGE, "Succeeded", ended(message="[1]")), b"", "Succeeded"),
    ("a name that is taken", pod(IMAGE, "Succeeded", ended(message='{"stdout": 1}')), b"", "Failed F-VAL"),
    ("a message that nests too deep", pod(IMAGE, "Succeeded", ended(message="[" * 4096)), b"", "Succeeded"),
    ("its program is missing", pod(IMAGE, main=ended(127, "StartError")), None, "Failed F-ENV"),
]


@pytest.mark.parametrize(("pod", "log", "expected"), [each[1:] for each in IMAGES], ids=[each[0] for each in IMAGES])
def test_a_command_in_the_users_image(pod: dict[str, Any], log: bytes | None, expected: str) -> None:
    assert verdict(pod, log) == expected


AGENTS: list[tuple[str, dict[str, Any], str]] = [
    ("it ended with 0, and its row is open", pod(AGENT, "Succeeded", ended()), "Lost F-ENV"),
    ("it ended with 1", pod(AGENT, main=ended(1)), "Lost F-ENV"),
    ("too much memory", pod(AGENT, main=ended(137, "OOMKilled")), "Failed F-RES"),
    ("evicted", pod(AGENT, main=ended(137), status=EVICTED), "Lost F-ENV"),
    ("the last deadline", pod(AGENT, main=ended(137), status=DEADLINE), "Failed F-TMO"),
    ("stopped by us", pod(AGENT, main=ended(143), status=DEADLINE, stop=True), "Cancelled"),
    ("stopped by us for a reason", pod(AGENT, main=ended(0), status=DEADLINE, stop=TOO_LONG), "Failed F-TMO"),
    ("turned away", pod(AGENT, status={"reason": "OutOfmemory"}), "NeverStarted F-ENV"),
]


@pytest.mark.parametrize(("pod", "expected"), [each[1:] for each in AGENTS], ids=[each[0] for each in AGENTS])
def test_an_agent(pod: dict[str, Any], expected: str) -> None:
    assert verdict(pod, None) == expected


def test_files_that_cannot_be_laid_fail_the_step_with_the_reason() -> None:
    files = {"name": "files", "state": ended(1, message="../x leaves the step's directory")}
    given = pod(IMAGE, main={"waiting": {"reason": "PodInitializing"}}, status={"initContainerStatuses": [files]})
    assert verdict(given) == "Failed F-ENV"
    failure = result_of(see(given), None).failure
    assert failure is not None
    assert "../x leaves the step's directory" in failure.message


def test_what_the_log_says_is_the_output_also_of_what_failed() -> None:
    assert result_of(see(pod(main=ended(3))), framed("so\n", code=3)).outputs["stdout"] == "so"
    image = result_of(see(pod(IMAGE, main=ended(3))), b"so\nlast words\n")
    assert image.outputs == {"exitCode": 3, "stdout": "so\nlast words", "stderr": ""}
    assert image.failure is not None
    assert image.failure.message == "the container ended with exit code 3: last words"
    stopped = result_of(see(pod(IMAGE, main=ended(143), status=DEADLINE, stop=True)), b"half")
    assert stopped.outputs["stdout"] == "half"


def test_a_message_tells_the_cause() -> None:
    for given, cause in (
        (pod(main=ended(137), status=EVICTED), "Evicted: The node was low on resource: memory."),
        (pod(main=ended(2)), "Error, exit code 2"),
        (pod(main=ended(143), **DELETED), "somebody deleted its Pod"),
        (pod(main=ended(143), status={"conditions": [DRAINED]}, **DELETED), "EvictionByEvictionAPI: evicting"),
        (pod(IMAGE, main=ended(143), **DELETED), "somebody deleted its Pod"),
        (pod(main=ended(128, "StartError", message="no such file")), "StartError: no such file"),
        (pod(status={"reason": "OutOfcpu", "message": "no cpu"}), "OutOfcpu: no cpu"),
    ):
        failure = result_of(see(given), b"").failure
        assert failure is not None
        assert cause in failure.message


SIDECAR = {"name": "sandbox", "state": ended(137, "OOMKilled"), "restartCount": 3}
UNDER_WAY = [
    pod(phase="Pending", main=WAITING),
    pod(phase="Pending", status={"startTime": None, "containerStatuses": None}),
    pod(phase="Running", main=RUNNING),
    pod(phase="Unknown", main=RUNNING),
    pod(AGENT, "Running", RUNNING, status={"initContainerStatuses": [SIDECAR]}),
    pod(phase="Running", main=RUNNING, **DELETED),
]


@pytest.mark.parametrize("pod", UNDER_WAY)
def test_a_pod_of_which_something_may_run_is_not_over(pod: dict[str, Any]) -> None:
    assert not see(pod).over


@pytest.mark.parametrize(
    ("status", "waiting"),
    [
        ({}, ""),
        ({"containerStatuses": [{"name": "main", "state": WAITING}]}, ""),
        (
            {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ErrImagePull", "message": "x"}}}]},
            "ErrImagePull: x",
        ),
        (
            {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "CreateContainerConfigError"}}}]},
            "CreateContainerConfigError",
        ),
        (
            {
                "initContainerStatuses": [{"name": "files", "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
                "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}],
            },
            "ImagePullBackOff",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "reason": "Unschedulable", "message": "0/3 nodes"}]},
            "Unschedulable: 0/3 nodes",
        ),
        ({"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}, ""),
        (
            {"conditions": [{"type": "PodScheduled", "reason": "Unschedulable", "message": "x" * 9_999}]},
            ("Unschedulable: " + "x" * 9_999)[:500],
        ),
    ],
)
def test_what_keeps_a_pod_from_starting(status: dict[str, Any], waiting: str) -> None:
    assert see(pod(phase="Pending", status={"containerStatuses": [], **status})).waiting == waiting


def test_the_times_are_those_of_the_api() -> None:
    seen = see(pod(IMAGE, "Running", RUNNING))
    assert seen.running_since == datetime(2027, 1, 31, 12, 0, 5, tzinfo=UTC)
    assert seen.created_at == datetime(2027, 1, 31, 11, 59, 59, tzinfo=UTC)
    bare = see_as({"metadata": {"name": "p", "creationTimestamp": "2027-01-31T11:59:59Z"}, "spec": {}}, COMMAND)
    assert (bare.running_since, bare.stopping, bare.stop) == (None, False, None)


def test_a_pod_is_gated_by_our_gate_alone() -> None:
    assert see({**pod(), "spec": {"containers": [{"name": COMMAND}], "schedulingGates": [{"name": GATE}]}}).gated
    assert not see(
        {**pod(), "spec": {"containers": [{"name": COMMAND}], "schedulingGates": [{"name": "example.com/queue"}]}}
    ).gated
