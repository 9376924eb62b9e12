"""Parts of the release and of the node, ended as crashes would end them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from e2e.cluster.clusters import Cluster
from e2e.cluster.errors import ClusterError
from e2e.faults.subject import container_of
from e2e.poll import until
from e2e.release import Release

OURS = ("operator", "gateway", "postgres")
"""What the release runs. Any other part is one of the node, named as in `components.names()`."""


@dataclass(frozen=True)
class Strikes:
    """All that is done to the parts."""

    release: Release
    cluster: Cluster

    def kill(self, *parts: str) -> None:
        """Kills every process of the parts as soon as they run. Of the node, nobody else starts them again."""
        for part in parts:
            if part in OURS:
                until(lambda part=part: self._killed(part), f"{part} runs, and is killed")  # type: ignore[misc]
        node = [part for part in parts if part not in OURS]
        for part in node:
            until(self._answers, "the API server answers")
            self.cluster.kill(part)
        for part in node:
            self.cluster.start(part)
        until(self._answers, "the API server answers again")

    def _killed(self, part: str) -> bool:
        """Not so while its Pods are not known to run, or when one that is known to has just died."""
        try:
            pods = self.release.pods(part)
            if not all("running" in pod["status"]["containerStatuses"][0]["state"] for pod in pods):
                return False
            for pod in pods:
                self.cluster.kill_container(container_of(pod))
        except (ClusterError, KeyError):
            return False
        return bool(pods)

    def _answers(self) -> bool:
        return self.release.kubectl.succeeds("get", "--raw", "/readyz")

    def whole(self) -> None:
        """Returns once the node and all of the release are ready."""
        ready = ("wait", "--for=condition=Ready", "--timeout=8s")
        ours = f"--selector=app.kubernetes.io/component in ({','.join(OURS)})"
        until(lambda: self.release.kubectl.succeeds(*ready, "nodes", "--all"), "the node is ready")
        until(lambda: self.release.own.succeeds(*ready, "pods", ours), "the release is ready")

    @contextmanager
    def database_away(self, seconds: float) -> Iterator[None]:
        """Kills the database's server and keeps it away for as long as the body takes, and for `seconds` at least.

        They count from the moment at which no process of it is left. Afterwards it has been asked to come back.
        """
        target = f"statefulset/{self.release.name}-postgres"
        [pod] = self.release.pods("postgres")
        self.kill("postgres")
        self.release.own("scale", target, "--replicas=0")
        try:
            self.release.own.wait("delete", f"pod/{pod['metadata']['name']}")
            gone = time.monotonic()
            yield
            time.sleep(max(0.0, gone + seconds - time.monotonic()))
        finally:
            self.release.own("scale", target, "--replicas=1")
