"""A cluster made by kind, in a container of an engine that answers."""

import json
import os
from pathlib import Path
from typing import Any

from e2e.cluster import binaries
from e2e.cluster.clients import Kubectl
from e2e.cluster.commands import run, say, succeeds
from e2e.cluster.components import Options
from e2e.cluster.engine import Engine
from e2e.cluster.errors import ClusterError
from e2e.cluster.layout import CONTEXT, Layout
from e2e.cluster.state import State, boot, exclusively

_CREATE_SECONDS = 600
# What systemd runs in the node, and what the kubelet restarts by itself when it is killed.
_SERVICES = ("kubelet", "containerd")
_STATIC_PODS = {
    "etcd": "etcd",
    "apiserver": "kube-apiserver",
    "controller-manager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
}


class KindCluster:
    """Makes, unmakes and disturbs the kind cluster of a layout."""

    def __init__(self, layout: Layout, engine: Engine) -> None:
        self._layout = layout
        self._engine = engine
        self._name = f"pilothouse-{layout.name}"
        self._node = f"{self._name}-control-plane"
        self._kubectl = Kubectl(layout)

    def up(self, options: Options) -> None:
        """Makes the cluster, unless it answers already with these options."""
        binaries.ensure(self._layout, binaries.CLIENTS)
        with exclusively(self._layout):
            self._up(options)

    def _up(self, options: Options) -> None:
        record = State.load(self._layout)
        if record and self._is_up(record, options):
            say(f"already running at {record.server}")
            return
        self._clear()
        self._layout.run.mkdir(parents=True, exist_ok=True)
        configuration = self._layout.run / "kind.yaml"
        configuration.write_text(json.dumps(node_configuration(options)))
        where = (f"--config={configuration}", f"--kubeconfig={self._layout.kubeconfig}")
        self._kind("create", "cluster", *where, "--wait=120s", timeout=_CREATE_SECONDS)
        self._record(options, self._own_kubeconfig()).save(self._layout)

    def _is_up(self, record: State, options: Options) -> bool:
        return record == self._record(options, record.server) and self._kubectl.succeeds("get", "--raw", "/readyz")

    def down(self) -> None:
        """Removes the cluster, or what an interrupted `up` left of it."""
        with exclusively(self._layout):
            self._clear()

    def _clear(self) -> None:
        self._kind("delete", "cluster", f"--kubeconfig={self._layout.kubeconfig}", timeout=120)
        for file in self._layout.run.glob("*"):
            if file.is_file():
                file.unlink()

    def status(self) -> dict[str, str]:
        """What each part of the node that can be disturbed does."""
        running = {name: self._runs("systemctl", "is-active", name) for name in _SERVICES}
        running |= {name: self._runs("pidof", program) for name, program in _STATIC_PODS.items()}
        return {name: "running" if runs else "not running" for name, runs in running.items()}

    def start(self, name: str) -> None:
        """Starts a service of the node; what the kubelet runs starts by itself."""
        if name in _SERVICES:
            self._in_node("systemctl", "start", name)

    def stop(self, name: str) -> None:
        """Stops a service of the node until `start`."""
        if name not in _SERVICES:
            raise ClusterError(f"in a kind cluster only {' and '.join(_SERVICES)} can be stopped, not {name}")
        self._in_node("systemctl", "stop", name)

    def kill(self, name: str) -> None:
        """Ends a part of the node with SIGKILL; in a kind cluster it comes back by itself."""
        if name not in (*_SERVICES, *_STATIC_PODS):
            raise ClusterError(f"in a kind cluster {name} is a Pod: delete it with kubectl")
        self._in_node("pkill", "-KILL", "-x", _STATIC_PODS.get(name, name)[:15])

    def kill_container(self, id_: str) -> None:
        """Ends a container of a Pod with SIGKILL."""
        self._in_node("ctr", "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", "--all", id_)

    def has(self, image: str) -> bool:
        """Tells whether the node has an image of this name."""
        return self._in_node("ctr", "--namespace=k8s.io", "images", "list", "-q", f"name=={image}").strip() == image

    def load(self, archive: Path) -> None:
        """Takes the image of an archive onto the node."""
        self._kind("load", "image-archive", str(archive), timeout=300)

    def tag(self, image: str, name: str) -> None:
        """Gives an image of the node a second name."""
        self._in_node("ctr", "--namespace=k8s.io", "images", "tag", "--force", image, name)

    def _own_kubeconfig(self) -> str:
        """Writes kind's kubeconfig anew as JSON and with our context; returns the API server's URL."""
        content = json.loads(self._kubectl("config", "view", "--raw", "--minify", "--output=json"))
        content["contexts"][0]["name"] = content["current-context"] = CONTEXT
        self._layout.kubeconfig.write_text(json.dumps(content))
        return str(content["clusters"][0]["cluster"]["server"])

    def _record(self, options: Options, server: str) -> State:
        programs = binaries.folder(self._layout).name
        return State("kind", server, programs, options.mutating_admission_policy, boot())

    def _kind(self, *arguments: str, timeout: float) -> str:
        environment = {**os.environ, "KIND_EXPERIMENTAL_PROVIDER": self._engine}
        return run("kind", *arguments, f"--name={self._name}", env=environment, timeout=timeout)

    def _in_node(self, *command: str) -> str:
        return run(self._engine, "exec", self._node, *command)

    def _runs(self, *command: str) -> bool:
        return succeeds(self._engine, "exec", self._node, *command)


def node_configuration(options: Options) -> dict[str, Any]:
    """kind's configuration: one node, whose kubelet restarts containers as soon as the native one does."""
    crash_loop = {"maxContainerRestartPeriod": "2s"}
    kubelet = {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "featureGates": {"KubeletCrashLoopBackOffMax": True},
        "crashLoopBackOff": crash_loop,
    }
    content: dict[str, Any] = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "nodes": [{"role": "control-plane"}],
        "kubeadmConfigPatches": [json.dumps(kubelet)],
    }
    if options.mutating_admission_policy:
        content["featureGates"] = {"MutatingAdmissionPolicy": True}
        content["runtimeConfig"] = {"admissionregistration.k8s.io/v1beta1": "true"}
    return content
