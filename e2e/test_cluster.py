"""The cluster itself: it is a real one, in the respects that other tests rely on."""

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e import pods
from e2e.cluster.clients import Kubectl
from e2e.cluster.clusters import Cluster
from e2e.cluster.commands import run, wait_for
from e2e.cluster.components import Options
from e2e.cluster.errors import ClusterError
from e2e.cluster.layout import Layout
from e2e.cluster.state import State

API_BY_NAME = """
import ssl, urllib.request
context = ssl.create_default_context(cafile="/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
print(urllib.request.urlopen("https://kubernetes.default.svc/version", context=context, timeout=10).read().decode())
"""
# Prints whether a connection to host, port is accepted; a policy drops packets, so the answer may be silence.
CONNECTS = """
import json, socket
try:
    socket.create_connection(({host!r}, {port}), timeout=1).close()
    print(json.dumps(True))
except OSError:
    print(json.dumps(False))
"""
SERVES = """
import http.server
http.server.ThreadingHTTPServer(("", 8080), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
DENIES = """
import http.server, json, ssl

class Denier(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verdict = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": "denied by the test"}}
        answer = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": verdict})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer.encode())

server = http.server.ThreadingHTTPServer(("", 8443), Denier)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/data/tls.crt", "/data/tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def test_has_one_ready_node_of_the_api_servers_version(kubectl: Kubectl) -> None:
    (node,) = kubectl.items("nodes")
    kubectl.wait("condition=Ready", f"node/{node['metadata']['name']}", seconds=30)
    assert node["status"]["nodeInfo"]["kubeletVersion"] == _version(kubectl)["gitVersion"]
    assert int(_version(kubectl)["minor"]) >= 33
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")


def test_runs_a_restricted_pod_that_reaches_the_api_server_by_its_name(
    kubectl: Kubectl, namespace: str, our_image: str
) -> None:
    pod = pods.restricted("reaches", our_image, ["python", "-c", API_BY_NAME], token=True)
    assert json.loads(pods.finished(kubectl.within(namespace), pod)) == _version(kubectl)


def test_refuses_a_pod_that_is_not_restricted(kubectl: Kubectl, namespace: str, our_image: str) -> None:
    pod = pods.restricted("root", our_image, ["true"])
    del pod["spec"]["securityContext"]
    with pytest.raises(ClusterError, match='violates PodSecurity "restricted'):
        kubectl.within(namespace).apply(pod)


def test_cuts_a_pod_off_by_a_network_policy_and_joins_it_again(
    kubectl: Kubectl, namespace: str, our_image: str
) -> None:
    within = kubectl.within(namespace)
    server = pods.restricted("server", our_image, ["python", "-c", SERVES], labels={"app": "server"})
    within.apply(server, pods.restricted("client", our_image, ["sleep", "600"]), _service(8080))
    within.wait("condition=Ready", "pod/server", "pod/client")

    def connects() -> bool:
        return bool(pods.python(within, "client", CONNECTS.format(host="server", port=80)))

    wait_for("the client reaches the server", connects, seconds=30)
    within.apply(_nobody_reaches("server"))
    wait_for("the policy cuts the server off", lambda: not connects(), seconds=30)
    within("delete", "networkpolicy", "server")
    wait_for("without the policy the client reaches the server again", connects, seconds=30)


def test_asks_a_webhook_through_its_service(kubectl: Kubectl, namespace: str, our_image: str, tmp_path: Path) -> None:
    """A webhook that says Ignore is passed by when the API server has no way to Services; nobody would notice."""
    within = kubectl.within(namespace)
    roots = _certificate(tmp_path, f"server.{namespace}.svc")
    files = (f"--from-file={name}={tmp_path / name}" for name in ("tls.crt", "tls.key"))
    within("create", "secret", "generic", "server", *files)
    secret = {"secret": {"secretName": "server"}}
    server = pods.restricted("server", our_image, ["python", "-c", DENIES], labels={"app": "server"}, volume=secret)
    within.apply(server, _service(8443))
    within.wait("condition=Ready", "pod/server")
    with _webhook(kubectl, namespace, roots):
        wait_for("the webhook is asked", lambda: "denied by the test" in _creation(within), seconds=60)


def test_binds_a_claim_to_a_volume_that_the_pods_group_may_write(
    kubectl: Kubectl, namespace: str, our_image: str
) -> None:
    within = kubectl.within(namespace)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
    volume = {"persistentVolumeClaim": {"claimName": "data"}}
    pod = pods.restricted("writer", our_image, ["sh", "-c", "echo kept > /data/file && cat /data/file"], volume=volume)
    pod["spec"]["securityContext"]["fsGroup"] = 10001
    within.apply(claim)
    assert pods.finished(within, pod) == "kept\n"


def test_evicts_a_pod_that_fills_its_volume(kubectl: Kubectl, namespace: str, our_image: str) -> None:
    within = kubectl.within(namespace)
    volume = {"emptyDir": {"sizeLimit": "1Mi"}}
    filling = ["sh", "-c", "head -c 4M /dev/zero > /data/file && sleep 600"]
    within.apply(pods.restricted("filling", our_image, filling, volume=volume))
    within.wait("jsonpath={.status.reason}=Evicted", "pod/filling", seconds=120)


def test_counts_a_node_as_lost_while_its_kubelet_is_stopped(kubectl: Kubectl, cluster: Cluster) -> None:
    cluster.stop("kubelet")
    try:
        kubectl.wait("condition=Ready=Unknown", "nodes", "--all", seconds=90)
    finally:
        cluster.start("kubelet")
    kubectl.wait("condition=Ready", "nodes", "--all", seconds=60)


def test_keeps_its_objects_when_the_api_server_is_killed(kubectl: Kubectl, cluster: Cluster, namespace: str) -> None:
    within = kubectl.within(namespace)
    within("create", "configmap", "kept")
    cluster.kill("apiserver")
    cluster.start("apiserver")
    wait_for("the API server is back", lambda: kubectl.succeeds("get", "--raw", "/readyz"), seconds=90)
    assert within("get", "configmap", "kept", "--output=name") == "configmap/kept\n"


def test_making_it_again_changes_nothing(cluster: Cluster, layout: Layout) -> None:
    before, record = cluster.status(), State.load(layout)
    assert record is not None
    cluster.up(Options(record.mutating_admission_policy))
    assert cluster.status() == before
    assert all(text.startswith("running") for text in before.values())


def _version(kubectl: Kubectl) -> dict[str, Any]:
    """What the API server says of itself."""
    version: dict[str, Any] = json.loads(kubectl("get", "--raw", "/version"))
    return version


def _service(port: int) -> dict[str, Any]:
    """The Service `server`, on the standard port of what its Pods serve."""
    ports = [{"port": 80 if port == 8080 else 443, "targetPort": port}]
    spec = {"selector": {"app": "server"}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"}, "spec": spec}


def _nobody_reaches(app: str) -> dict[str, Any]:
    spec = {"podSelector": {"matchLabels": {"app": app}}, "policyTypes": ["Ingress"]}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": app}, "spec": spec}


def _certificate(folder: Path, host: str) -> str:
    """Makes tls.crt and tls.key for a host, signed by themselves; returns the certificate in base64."""
    key, certificate = folder / "tls.key", folder / "tls.crt"
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    names = ("-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}")
    run("openssl", "req", *kind, *names, "-keyout", key, "-out", certificate)
    return base64.b64encode(certificate.read_bytes()).decode()


@contextlib.contextmanager
def _webhook(kubectl: Kubectl, namespace: str, roots: str) -> Iterator[None]:
    """Has new ConfigMaps of the namespace reviewed by its Service `server`."""
    webhook = {
        "name": "e2e.pilothouse.dev",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 5,
        "clientConfig": {"caBundle": roots, "service": {"namespace": namespace, "name": "server", "path": "/"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
    }
    kind = "ValidatingWebhookConfiguration"
    group = "admissionregistration.k8s.io/v1"
    kubectl.apply({"apiVersion": group, "kind": kind, "metadata": {"name": namespace}, "webhooks": [webhook]})
    try:
        yield
    finally:
        kubectl("delete", kind, namespace)


def _creation(kubectl: Kubectl) -> str:
    """What the API server says to a new ConfigMap."""
    try:
        return kubectl("create", "configmap", "new", "--dry-run=server")
    except ClusterError as error:
        return str(error)
