"""`python -I -m pilothouse_operator.check`: waits until an installation works, or says what is wrong and what to do.

The chart runs it after an install and an upgrade. It looks from where a user's Pod stands: through Services, with the
gateway's own certificate. PILOTHOUSE_CHECK_SECONDS bounds the wait; the exit code is 1 if anything still fails then.
"""

import os
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from pilothouse.api.base import GROUP, VERSION
from pilothouse.api.crd import KINDS

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_PAUSE = 2.0
"""Seconds between two rounds."""

_TIMEOUT = 5.0
"""Seconds that one answer may take."""


class Problem(Exception):  # noqa: N818 - most pass by themselves: they are what is waited for
    """A check does not hold. `final`: nor will it by waiting."""

    def __init__(self, told: str, remedy: str, *, final: bool = False) -> None:
        super().__init__(told)
        self.told = told
        self.remedy = remedy
        self.final = final


@dataclass(frozen=True, slots=True)
class Installation:
    """What is checked, and how it is reached. The clients' base addresses are those of the three servers."""

    namespace: str
    release: str
    config_map: str
    migrate_job: str
    api: httpx.Client
    operator: httpx.Client
    gateway: httpx.Client

    @classmethod
    @contextmanager
    def of(cls, environment: Mapping[str, str]) -> Iterator["Installation"]:
        """As the chart's Job describes it."""
        token = (_ACCOUNT / "token").read_text()
        trusted = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
        ours = ssl.create_default_context(cafile=environment["PILOTHOUSE_STORE_CA"])
        host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
        address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        with (
            httpx.Client(base_url=address, verify=trusted, timeout=_TIMEOUT) as api,
            httpx.Client(base_url=environment["PILOTHOUSE_OPERATOR_URL"], timeout=_TIMEOUT) as operator,
            httpx.Client(base_url=environment["PILOTHOUSE_STORE_URL"], verify=ours, timeout=_TIMEOUT) as gateway,
        ):
            api.headers["Authorization"] = f"Bearer {token}"
            yield cls(
                namespace=environment["PILOTHOUSE_NAMESPACE"],
                release=environment["PILOTHOUSE_RELEASE"],
                config_map=environment["PILOTHOUSE_INSTALLATION_CONFIGMAP"],
                migrate_job=environment["PILOTHOUSE_MIGRATE_JOB"],
                api=api,
                operator=operator,
                gateway=gateway,
            )

    def object(self, path: str) -> dict[str, Any] | None:
        """The API server's answer, None where it knows no such thing. Raises Problem."""
        try:
            answer = self.api.get(path)
        except httpx.HTTPError as error:
            raise Problem(
                f"the API server does not answer ({_reason(error)})",
                "name its address in networkPolicy.apiServer (`kubectl get endpoints kubernetes` shows it)",
            ) from None
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        if answer.is_error:
            raise Problem(
                f"the API server answers {answer.status_code} for {path}",
                f"give the service account {self.release}-check what the chart's rbac.txt lists",
            )
        found: dict[str, Any] = answer.json()
        return found


def kinds(installation: Installation) -> str:
    """The four kinds are served."""
    found = installation.object(f"/apis/{GROUP}/{VERSION}") or {"resources": []}
    served = {resource["name"] for resource in found["resources"]}
    missing = [kind.plural for kind in KINDS if kind.plural not in served]
    if missing:
        raise Problem(
            f"the API server does not serve {', '.join(missing)}",
            "install the definitions: crds.enabled=true, or kubectl apply --server-side -f crds/",
        )
    return f"the API server serves {', '.join(kind.plural for kind in KINDS)}"


def database(installation: Installation) -> str:
    """The migrate Job has ended well, and the installation has its id."""
    name, namespace = installation.migrate_job, installation.namespace
    job = installation.object(f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")
    if job is None:
        raise Problem(f"there is no Job {name}", "helm upgrade makes it again")
    status = job.get("status", {})
    ended = {each["type"]: each.get("message", "") for each in status.get("conditions", []) if each["status"] == "True"}
    remedy = f"kubectl logs -n {namespace} job/{name} says why"
    if "Failed" in ended:
        raise Problem(
            f"the Job {name} failed: {ended['Failed']}", f"{remedy}; then delete it and helm upgrade", final=True
        )
    if "Complete" not in ended:
        raise Problem(f"the Job {name} has not ended", remedy)
    return f"the schema is this version's; the installation is {_identity(installation)}"


def _identity(installation: Installation) -> str:
    path = f"/api/v1/namespaces/{installation.namespace}/configmaps/{installation.config_map}"
    identity: str = ((installation.object(path) or {}).get("data") or {}).get("id", "")
    if not identity:
        raise Problem(
            f"the ConfigMap {installation.config_map} has no id, though the migrate Job ended well",
            f"kubectl delete -n {installation.namespace} job/{installation.migrate_job}, then helm upgrade",
            final=True,
        )
    return identity


def operator(installation: Installation) -> str:
    """The operator is ready."""
    return _ready(installation, installation.operator, "operator")


def gateway(installation: Installation) -> str:
    """The gateway is ready, and shows a certificate that agents will accept."""
    return _ready(installation, installation.gateway, "gateway")


def _ready(installation: Installation, client: httpx.Client, name: str) -> str:
    deployment = f"{installation.release}-{name}"
    remedy = f"kubectl describe pods -n {installation.namespace} -l app.kubernetes.io/component={name}; " + (
        f"kubectl logs -n {installation.namespace} deployment/{deployment}"
    )
    try:
        answer = client.get("/readyz")
    except httpx.HTTPError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            remedy = (
                f"let ca.crt and tls.crt of the gateway's Secret belong together and name {client.base_url.host}, then "
                f"kubectl rollout restart -n {installation.namespace} deployment/{deployment}"
            )
        raise Problem(f"{deployment} does not answer at {client.base_url} ({_reason(error)})", remedy) from None
    if answer.is_error:
        raise Problem(f"{deployment} is not ready ({answer.status_code}): {answer.text.strip()[:500]}", remedy)
    return f"{deployment} is ready"


def _reason(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__


CHECKS: tuple[Callable[[Installation], str], ...] = (kinds, database, operator, gateway)


@dataclass(frozen=True, slots=True)
class Clock:
    """The time, in seconds."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def check(installation: Installation, seconds: float, say: Callable[[str], None], clock: Clock | None = None) -> bool:
    """Repeats what fails until all holds, time is up, or waiting is of no use; says each thing once it is settled."""
    clock = clock or Clock()
    deadline = clock.now() + seconds
    waiting = list(CHECKS)
    while True:
        problems = _round(installation, waiting, say)
        waiting = list(problems)
        if not problems:
            return True
        if clock.now() >= deadline or any(problem.final for problem in problems.values()):
            for one, problem in problems.items():
                say(f"FAILED  {one.__name__}: {problem.told}\n        do: {problem.remedy}")
            return False
        clock.sleep(_PAUSE)


def _round(
    installation: Installation, checks: list[Callable[[Installation], str]], say: Callable[[str], None]
) -> dict[Callable[[Installation], str], Problem]:
    problems = {}
    for one in checks:
        try:
            told = one(installation)
        except Problem as problem:
            problems[one] = problem
        else:
            say(f"ok      {one.__name__}: {told}")
    return problems


def main() -> int:
    with Installation.of(os.environ) as installation:
        return 0 if check(installation, float(os.environ["PILOTHOUSE_CHECK_SECONDS"]), _say) else 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
