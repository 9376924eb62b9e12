"""What the chart's check Job says of an installation that works, that does not yet, and that never will."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from pilothouse_operator.check import Clock, Installation, check

KINDS = ["agents", "packs", "toolapprovals", "workflows"]
JOB = "/apis/batch/v1/namespaces/ph/jobs/ph-migrate-1"
CONFIG_MAP = "/api/v1/namespaces/ph/configmaps/ph-installation"
COMPLETE = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
FAILED = {"status": {"conditions": [{"type": "Failed", "status": "True", "message": "10 tries"}]}}


@dataclass
class World:
    """Three servers, and a clock that each pause moves on. What a test changes is what is wrong."""

    objects: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            "/apis/pilothouse.dev/v1alpha1": {"resources": [{"name": name} for name in KINDS]},
            JOB: COMPLETE,
            CONFIG_MAP: {"data": {"id": "an-id"}},
        }
    )
    operator: Callable[[httpx.Request], httpx.Response] = lambda request: httpx.Response(200)
    gateway: Callable[[httpx.Request], httpx.Response] = lambda request: httpx.Response(200)
    later: Callable[[], None] = lambda: None
    time: float = 0.0
    said: list[str] = field(default_factory=list)

    def check(self, seconds: float = 60) -> bool:
        installation = Installation("ph", "ph", "ph-installation", "ph-migrate-1", *self._clients())
        return check(installation, seconds, self.said.append, Clock(lambda: self.time, self._pass))

    def failure(self, seconds: float = 60) -> str:
        """The one failure that is said after `seconds` at most."""
        assert not self.check(seconds)
        [failure] = [line for line in self.said if line.startswith("FAILED")]
        return failure

    def _clients(self) -> tuple[httpx.Client, httpx.Client, httpx.Client]:
        def client(name: str, handler: Callable[[httpx.Request], httpx.Response]) -> httpx.Client:
            return httpx.Client(base_url=f"http://{name}", transport=httpx.MockTransport(handler))

        return client("api", self._api), client("ph-operator", self.operator), client("ph-gateway", self.gateway)

    def _api(self, request: httpx.Request) -> httpx.Response:
        found = self.objects.get(request.url.path)
        return httpx.Response(404) if found is None else httpx.Response(200, json=found)

    def _pass(self, seconds: float) -> None:
        self.time += seconds
        self.later()


def test_what_works_is_said_once_each() -> None:
    world = World()
    assert world.check()
    assert [line.split(":")[0] for line in world.said] == [
        "ok      kinds",
        "ok      database",
        "ok      operator",
        "ok      gateway",
    ]
    assert "the installation is an-id" in world.said[1]


def test_it_waits_for_what_comes_late() -> None:
    world = World()
    world.objects[JOB] = {"status": {}}

    def later() -> None:
        if world.time >= 30:
            world.objects[JOB] = COMPLETE

    world.later = later
    assert world.check(seconds=40)
    assert 30 <= world.time < 40


def test_a_migration_that_failed_for_good_ends_the_wait_at_once() -> None:
    world = World()
    world.objects[JOB] = FAILED
    told = world.failure()
    assert "the Job ph-migrate-1 failed: 10 tries" in told
    assert "kubectl logs -n ph job/ph-migrate-1" in told
    assert world.time == 0


def test_a_migration_that_does_not_end_is_named_when_time_is_up() -> None:
    world = World()
    world.objects[JOB] = {"status": {"active": 1}}
    told = world.failure(seconds=10)
    assert "the Job ph-migrate-1 has not ended\n" in told, "how often its container began anew, a Job does not tell"
    assert "kubectl logs -n ph job/ph-migrate-1" in told
    assert world.time == 10


def test_a_missing_job_and_a_missing_id_are_told_apart() -> None:
    world = World()
    del world.objects[JOB]
    assert "there is no Job ph-migrate-1" in world.failure()
    world = World()
    world.objects[CONFIG_MAP] = {}
    assert "has no id, though the migrate Job ended well" in world.failure()


@pytest.mark.parametrize("served", [[], ["agents", "packs"]])
def test_kinds_that_are_not_served_are_named(served: list[str]) -> None:
    world = World()
    world.objects["/apis/pilothouse.dev/v1alpha1"]["resources"] = [{"name": name} for name in served]
    told = world.failure()
    assert all(name in told for name in set(KINDS) - set(served))
    assert "crds.enabled=true" in told


def test_a_group_that_is_not_served_at_all_is_all_kinds() -> None:
    world = World()
    del world.objects["/apis/pilothouse.dev/v1alpha1"]
    assert "does not serve agents, workflows, packs, toolapprovals" in world.failure()


def test_an_operator_that_is_not_ready_says_why() -> None:
    world = World(operator=lambda request: httpx.Response(503, text="StoreMismatch: another database"))
    told = world.failure()
    assert "ph-operator is not ready (503): StoreMismatch: another database" in told
    assert "kubectl logs -n ph deployment/ph-operator" in told


def test_a_certificate_that_agents_would_refuse_is_told_apart_from_silence() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")

    def silence(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("")

    assert "ca.crt and tls.crt of the gateway's Secret belong together" in World(gateway=refuse).failure()
    told = World(gateway=silence).failure()
    assert "does not answer at http://ph-gateway (ConnectTimeout)" in told
    assert "kubectl logs -n ph deployment/ph-gateway" in told


def test_the_api_server_that_refuses_or_is_silent_is_no_reason_to_crash() -> None:
    world = World()
    world._api = lambda request: httpx.Response(403)  # type: ignore[method-assign]
    assert not world.check()
    assert all("give the service account ph-check" in line for line in world.said if line.startswith("FAILED"))
    assert sum(line.startswith("FAILED") for line in world.said) == 2
