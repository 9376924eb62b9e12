"""What the store API gives from the position of an agent's Pod: that Pod's own attempt, and nothing else."""

import base64
import hmac
import json
from collections.abc import Iterator
from typing import Any

import pytest

from e2e import pods
from e2e.cluster.clients import Kubectl
from e2e.isolation.callers import call, pass_of
from e2e.isolation.scene import AtWork
from e2e.poll import until
from e2e.release import Release

AUDIENCE = "pilothouse-store"
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}


@pytest.fixture(scope="module")
def mine(release: Release, kubectl: Kubectl, shared_namespace: str) -> Kubectl:
    return kubectl.within(shared_namespace)


@pytest.fixture(scope="module")
def own(mine: Kubectl) -> AtWork:
    return AtWork.of(mine, "own")


@pytest.fixture(scope="module")
def other(mine: Kubectl, own: AtWork) -> AtWork:
    """Another agent of the same namespace."""
    return AtWork.of(mine, "other")


@pytest.fixture
def idle(mine: Kubectl, our_image: str) -> Iterator[AtWork]:
    """A Pod of the same namespace and service account that carries no attempt."""
    yield _idle(mine, our_image, "idle", {})
    mine("delete", "pod", "idle", "--ignore-not-found", "--grace-period=0")


def _idle(kubectl: Kubectl, image: str, name: str, labels: dict[str, str]) -> AtWork:
    """A Pod that no node takes: to have a token it needs to be there, not to run."""
    pod = pods.restricted(name, image, ["true"], labels=labels)
    pod["spec"]["nodeSelector"] = {"no": "node"}
    kubectl.apply(pod)
    return AtWork(kubectl, name, kubectl.get("pod", name)["metadata"]["uid"])


def _token(of: AtWork, *audience: str) -> str:
    """A token of the namespace's service account that is bound to a Pod, as the kubelet has it made."""
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={of.name}", f"--bound-object-uid={of.uid}")
    audiences = [f"--audience={each}" for each in audience]
    return of.kubectl("create", "token", "default", *bound, *audiences).strip()


def _session(release: Release, run: str) -> str:
    [[session]] = release.sql("SELECT id FROM sessions WHERE run = %s", run)
    return session


def test_a_pod_is_given_its_own_attempt(own: AtWork, release: Release) -> None:
    _, attempt = pass_of(own)
    assert release.sql("SELECT carrier, state FROM attempts WHERE id = %s", attempt["attempt"]) == [[own.uid, "Open"]]
    status, session = call(own, "open_session", "pass", {"session": _session(release, attempt["run"])})
    assert status == 200
    assert len(session["entries"]) > 3
    assert call(own, "token", _token(own, AUDIENCE))[0] == 200


def test_another_attempt_cannot_be_named(own: AtWork, other: AtWork, release: Release) -> None:
    """No path and no body has a place for it; what belongs to another run is not there."""
    token, mine = pass_of(own)
    _, theirs = pass_of(other)
    assert mine["attempt"] != theirs["attempt"]
    session = _session(release, theirs["run"])
    for method, body in (("open_session", {}), ("tool_calls", {"turn": session}), ("append", _NOTHING)):
        status, answer = call(own, method, token, {"session": session, **theirs, **body})
        assert status in (403, 404, 409)
        assert "entries" not in answer
    assert call(own, f"{theirs['attempt']}/finish", token)[0] == 404
    assert _open(release, theirs["attempt"])


_NOTHING: dict[str, Any] = {"leaf": None, "entries": [], "events": [], "outcomes": []}


def _open(release: Release, attempt: str) -> bool:
    return release.sql("SELECT state FROM attempts WHERE id = %s", attempt) == [["Open"]]


def test_an_attempt_token_that_was_altered_is_refused(own: AtWork, other: AtWork) -> None:
    """For another attempt, with another fence, without a signature, or with one of the Pod's own making."""
    token, _ = pass_of(own)
    _, theirs = pass_of(other)
    head, claims, signature = token.split(".")
    fenced = _altered(claims, fence=2)
    unsigned = _encoded({"alg": "none", "typ": _decoded(head)["typ"]})
    stolen = _altered(claims, **{name: theirs[name] for name in ("run", "attempt", "fence")})
    forged = hmac.digest(b"", f"{head}.{stolen}".encode(), "sha256")
    tokens = [
        f"{head}.{stolen}.{signature}",
        f"{head}.{fenced}.{signature}",
        f"{unsigned}.{stolen}.",
        f"{head}.{stolen}.{base64.urlsafe_b64encode(forged).decode().rstrip('=')}",
        "nonsense",
    ]
    assert [call(own, "open_session", each, {"session": theirs["run"]})[0] for each in tokens] == [401] * len(tokens)


def test_a_token_for_another_audience_is_refused(own: AtWork) -> None:
    for audience in ((), ("pilothouse-gateway",), ("pilothouse-store-api",)):
        assert call(own, "token", _token(own, *audience))[0] == 401
    assert call(own, "token", pass_of(own)[0])[0] == 401
    assert call(own, "open_session", "own", {"session": own.uid})[0] == 401


def test_the_pod_s_token_opens_nothing_else(own: AtWork, mine: Kubectl) -> None:
    """Neither the read API of the gateway nor the API server takes it."""
    read = f"../../read/v1/namespaces/{mine.namespace}/runs"
    assert own.python(_GETS, read) == 401
    assert own.python(_GETS, "https://kubernetes.default.svc/api") == 401


_GETS = """
import os, ssl, sys, urllib.error, urllib.parse, urllib.request
url = urllib.parse.urljoin(os.environ["PILOTHOUSE_STORE_URL"] + "/store/v1/", sys.argv[1])
token = open("/var/run/pilothouse/store/token").read().strip()
context = ssl._create_unverified_context()
try:
    request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token})
    print(urllib.request.urlopen(request, context=context, timeout=30).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


def test_a_pod_that_carries_no_attempt_is_refused(own: AtWork, idle: AtWork) -> None:
    assert call(own, "token", _token(idle, AUDIENCE))[0] == 403


def test_a_service_account_without_a_pod_is_refused(own: AtWork, mine: Kubectl) -> None:
    assert call(own, "token", mine("create", "token", "default", f"--audience={AUDIENCE}").strip())[0] == 403


def test_a_pod_of_another_namespace_is_refused(own: AtWork, kubectl: Kubectl, namespace: str, our_image: str) -> None:
    """Also one of the same name, and with the labels of the attempt."""
    labels = own.kubectl.get("pod", own.name)["metadata"]["labels"]
    ours = {name: value for name, value in labels.items() if name.startswith("pilothouse.dev/")}
    twin = _idle(kubectl.within(namespace), our_image, own.name, ours)
    assert call(own, "token", _token(twin, AUDIENCE))[0] == 403


def test_a_deleted_pod_is_refused(own: AtWork, idle: AtWork) -> None:
    token = _token(idle, AUDIENCE)
    assert call(own, "token", token)[0] == 403
    idle.kubectl("delete", "pod", idle.name, "--grace-period=0", "--timeout=30s")
    until(lambda: call(own, "token", token)[0] == 401, "the token is refused as nobody's", 30)


def test_an_old_fence_is_refused(own: AtWork, release: Release, kubectl: Kubectl, namespace: str) -> None:
    """The Pod is gone, and the attempt that follows it is open: a quota holds its Pod back."""
    there = kubectl.within(namespace)
    gone = AtWork.of(there, "gone")
    projected = _token(gone, AUDIENCE)
    token, attempt = pass_of(gone)
    session = {"session": _session(release, attempt["run"])}
    assert call(own, "open_session", token, session)[0] == 200
    there.apply(QUOTA)
    there("delete", "pod", gone.name, "--timeout=60s", timeout=70)
    query = "SELECT fence FROM attempts WHERE run = %s AND state = 'Open'"
    until(lambda: release.sql(query, attempt["run"]) == [[str(attempt["fence"] + 1)]], "the next attempt is open")
    for method, body in (
        ("open_session", session),
        ("append", {**session, **_NOTHING}),
        ("put_blob", {}),
        ("finish", {"state": "Succeeded", "outputs": {}, "failure": None}),
    ):
        status, answer = call(own, method, token, body)
        assert (status, answer["type"]) == (403, "Superseded")
    assert call(own, "token", projected)[0] == 401


def _decoded(part: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return decoded


def _encoded(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def _altered(claims: str, **changes: Any) -> str:
    return _encoded({**_decoded(claims), **changes})
