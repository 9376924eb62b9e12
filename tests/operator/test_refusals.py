"""What the API server refuses: some of it is waited for, some of it ends the run, and none of it touches others."""

import pytest

from pilothouse.records.failures import Failed
from pilothouse.store.errors import Conflict
from pilothouse_operator.executor import Held, _refusal
from pilothouse_operator.kube.errors import Changed, Refused
from pilothouse_operator.kube.resources import PODS, WORKFLOWS
from pilothouse_operator.objects import Key
from pilothouse_operator.operator import SWEEP
from pilothouse_operator.shift import Shift
from pilothouse_operator.workqueue import LONGEST_PAUSE
from tests.operator.desk import NAMESPACE, Desk, command
from tests.operator.kubelet import Kubelet
from tests.operator.strikes import Strike


async def test_a_quota_is_waited_for(desk: Desk) -> None:
    await desk.begin()
    desk.fake.admission.quotas[NAMESPACE] = 1
    desk.workflow(command("a"), command("b"))
    await desk.later(1)
    assert len(desk.kubelet.pods()) == 1
    (waits,) = [step for step in desk.object()["status"]["steps"] if "message" in step]
    assert "exceeded quota" in waits["message"]
    assert waits["state"] == "Running"
    (first,) = desk.kubelet.pods()
    desk.kubelet.succeed(first["metadata"]["labels"]["pilothouse.dev/step"])
    await desk.later(SWEEP)
    desk.kubelet.succeed(waits["path"])
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert desk.kubelet.executions == {"a": 1, "b": 1}


async def test_a_quota_that_others_write_to_at_the_same_time_is_tried_again_at_once(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """The API server gives up on a quota's object, after some tries of its own, with a 409."""
    strike = Strike(error=lambda: Changed('Operation cannot be fulfilled on resourcequotas "q"'))
    desk.kube = strike.kube(desk.fake)
    await desk.begin()
    strike.number = 1
    desk.workflow()
    await desk.later(0.1)
    assert strike.points[:2] == ["create pods", "create pods"]
    assert len(desk.kubelet.pods("a")) == 1
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_write_that_comes_too_late_again_and_again_is_made_ever_more_rarely(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def late(_: Shift, key: Key) -> None:
        raise Conflict("the attempt has ended")

    monkeypatch.setattr(Shift, "_reconcile", late)
    shift = desk.shift(epoch=1)
    for _ in range(20):
        await shift.look(desk.key())
    assert shift.queue.failed(desk.key()) >= LONGEST_PAUSE / 2


async def test_a_service_account_that_is_not_there_yet_is_waited_for(desk: Desk) -> None:
    await desk.begin()
    desk.fake.admission.without_account.add(NAMESPACE)
    desk.workflow()
    await desk.later(1)
    assert 'serviceaccount "default" not found' in desk.message()
    assert desk.condition("Reconciling") == ("True", "Progressing")
    desk.fake.admission.without_account.clear()
    await desk.later(SWEEP)
    desk.kubelet.succeed("a")
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")


async def test_a_policy_ends_the_run_with_its_words(desk: Desk) -> None:
    await desk.begin()
    desk.fake.admission.policies[NAMESPACE] = 'admission webhook "p.example.com" denied the request: no weekends'
    desk.workflow(command("a", retry={"attempts": 3, "delay": "1ms"}))
    await desk.later(100)
    assert desk.condition("Stalled") == ("True", "PolicyRefused")
    assert desk.condition("Finished") == ("True", "PolicyRefused")
    assert "no weekends" in desk.message()
    assert "F-SEC" in desk.message()
    assert desk.events() == [("Warning", "PolicyRefused")]
    assert len(await desk.attempts()) == 1, "a policy says the same the next time"


async def test_every_pod_that_is_made_is_restricted(desk: Desk) -> None:
    """The namespace of all these tests enforces it; here it is shown to."""
    await desk.begin()
    pod = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    with pytest.raises(Refused, match="violates PodSecurity"):
        await desk.fake.create(PODS, NAMESPACE, pod)


async def test_a_namespace_whose_rights_are_lost_waits_and_no_other_does(desk: Desk) -> None:
    await desk.begin()
    desk.fake.add_namespace("team-b")
    other = Kubelet(desk.fake, "team-b")
    desk.workflow()
    await desk.settle()
    desk.kubelet.start("a")
    await desk.settle()
    desk.fake.admission.revoked.add(NAMESPACE)
    desk.kubelet.end("a", b"")
    body = {"apiVersion": "pilothouse.dev/v1alpha1", "kind": "Workflow", "metadata": {"name": "hello"}}
    desk.fake.put(WORKFLOWS, "team-b", {**body, "spec": {"steps": [command("a")]}})
    await desk.settle()
    other.succeed("a")
    await desk.settle()
    there = desk.fake.find(WORKFLOWS, "team-b", "hello")
    assert there is not None
    assert there["status"]["run"]["state"] == "Succeeded"
    assert desk.condition("Finished") == ("False", "Progressing")
    desk.fake.admission.revoked.clear()
    await desk.later(100)
    assert desk.condition("Finished")[0] == "True"
    assert desk.kubelet.pods() == []


async def test_a_workflow_without_rights_to_make_its_pod_begins_once_they_are_there(desk: Desk) -> None:
    await desk.begin()
    desk.fake.admission.revoked.add(NAMESPACE)
    desk.workflow()
    await desk.later(100)
    assert await desk.states() == {"a": "Running"}
    desk.fake.admission.revoked.clear()
    await desk.later(100)
    assert len(desk.kubelet.pods("a")) == 1


async def test_a_namespace_that_is_being_deleted_fails_nothing(desk: Desk) -> None:
    await desk.begin()
    desk.fake.admission.terminating.add(NAMESPACE)
    desk.workflow()
    await desk.later(100)
    assert await desk.states() == {"a": "Running"}
    desk.fake.remove_namespace(NAMESPACE)
    await desk.later(100)
    (run,) = await desk.runs()
    assert run.state.value == "Cancelled"


WAITED_FOR = [
    'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1',
    'pods "x" is forbidden: status unknown for quota: q, resources: pods',
    'pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods" in API group ""',
    'pods "x" is forbidden: unable to create new content in namespace c because it is being terminated',
    'pods "x" is forbidden: error looking up service account c/default: serviceaccount "default" not found',
]
POLICIES = [
    'pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged (container "main" must not set it)',
    'admission webhook "validate.kyverno.svc" denied the request: no latest tags',
    'pods "x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi',
]


@pytest.mark.parametrize("message", WAITED_FOR)
def test_what_may_change_is_waited_for(message: str) -> None:
    assert isinstance(_refusal(Refused(message, forbidden=True)), Held)
    assert str(_refusal(Refused(message, forbidden=True))) == message


def test_a_namespace_that_is_gone_is_waited_for() -> None:
    assert isinstance(_refusal(Refused('namespaces "c" not found')), Held)


@pytest.mark.parametrize(
    "message",
    [
        'pods "x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi',
        'pods "x" is forbidden: [minimum cpu usage per Pod is 1, but request is 50m, maximum cpu usage per Pod is 1]',
        'pods "x" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.0',
        'pods "x" is forbidden: failed quota: q: must specify limits.cpu for: main; requests.cpu for: main',
    ],
)
def test_what_is_asked_for_wrongly_is_told_with_the_field_that_sets_it(message: str) -> None:
    error = _refusal(Refused(message, forbidden=True))
    assert isinstance(error, Failed)
    assert error.failure.reason == "PolicyRefused"
    assert f"{message}; set `pod.resources`" in error.failure.message


@pytest.mark.parametrize("message", POLICIES)
def test_a_policy_is_final(message: str) -> None:
    error = _refusal(Refused(message, forbidden=True))
    assert isinstance(error, Failed)
    assert (error.failure.code.value, error.failure.reason) == ("F-SEC", "PolicyRefused")
    assert message in error.failure.message


@pytest.mark.parametrize(
    ("message", "code", "reason"),
    [
        ("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", "F-SEC", "PolicyRefused"),
        ('admission webhook "w.example.com" denied the request: no', "F-SEC", "PolicyRefused"),
        ('Pod in version "v1" cannot be handled as a Pod: quantities must match', "F-INP", ""),
        ('Pod "x" is invalid: spec.nodeSelector: Invalid value: "a b"', "F-INP", ""),
    ],
)
def test_what_the_server_calls_invalid_is_a_policys_word_or_the_users_mistake(
    message: str, code: str, reason: str
) -> None:
    error = _refusal(Refused(message))
    assert isinstance(error, Failed)
    assert (error.failure.code.value, error.failure.reason) == (code, reason)
