"""The configuration files of a native cluster's components. YAML is a superset of JSON, so JSON is what is written."""

import base64
import json
from pathlib import Path
from typing import Any

from e2e.cluster.layout import CONTEXT, Layout

# The components that speak to the API server, each with a certificate of the same name.
CLIENTS = ("controller-manager", "scheduler", "kubelet", "proxy", "dns", "netpol")


def write(layout: Layout) -> None:
    """Writes all of them."""
    for name in CLIENTS:
        _write_json(kubeconfig_of(layout, name), kubeconfig(layout, name))
    _write_json(layout.kubeconfig, kubeconfig(layout, "admin"))
    _write_json(layout.run / "kubelet.yaml", kubelet(layout))
    _write_json(layout.run / "proxy.yaml", proxy(layout))
    (layout.run / "cni").mkdir(exist_ok=True)
    _write_json(layout.run / "cni" / "pods.conflist", pod_network(layout))
    (layout.run / "containerd.toml").write_text(containerd(layout))
    (layout.run / "Corefile").write_text(dns(layout))
    # The resolver of Pods that do not ask for cluster DNS: nothing outside is to be reached.
    (layout.run / "resolv.conf").write_text("nameserver 127.0.0.1\n")


def kubeconfig_of(layout: Layout, name: str) -> Path:
    """The file of a component's kubeconfig."""
    return layout.run / f"{name}.kubeconfig"


def kubeconfig(layout: Layout, name: str) -> dict[str, Any]:
    """A kubeconfig with all keys inside, so that a copy of it works anywhere on this machine."""

    def content(file: str) -> str:
        return base64.b64encode((layout.pki / file).read_bytes()).decode()

    cluster = {"server": layout.server, "certificate-authority-data": content("ca.crt")}
    user = {"client-certificate-data": content(f"{name}.crt"), "client-key-data": content(f"{name}.key")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": user}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
        "current-context": CONTEXT,
    }


def kubelet(layout: Layout) -> dict[str, Any]:
    """The kubelet's configuration: short periods, as tests wait for them; the disk may be nearly full."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": layout.address,
        "authentication": {"x509": {"clientCAFile": str(layout.pki / "ca.crt")}, "anonymous": {"enabled": False}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(layout.pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(layout.pki / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{layout.socket}",
        "clusterDNS": [layout.dns_service],
        "clusterDomain": "cluster.local",
        "resolvConf": str(layout.run / "resolv.conf"),
        "podLogsDir": str(layout.run / "pods"),
        "volumePluginDir": str(layout.run / "volume-plugins"),
        # A cgroup of our own: kubelets end the Pods that they find in theirs and do not know.
        "cgroupRoot": f"/{layout.cgroup}",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": ["pods"],
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "maxPods": 200,
        "nodeStatusUpdateFrequency": "4s",
        "volumeStatsAggPeriod": "10s",
        "nodeLeaseDurationSeconds": 12,
        "featureGates": {"KubeletCrashLoopBackOffMax": True},
        "crashLoopBackOff": {"maxContainerRestartPeriod": "2s"},
    }


def proxy(layout: Layout) -> dict[str, Any]:
    """kube-proxy's configuration; the machine's limits on tracked connections stay as they are."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig_of(layout, "proxy"))},
        "mode": "iptables",
        "clusterCIDR": layout.pods,
        "hostnameOverride": layout.name,
        "healthzBindAddress": f"{layout.address}:10256",
        "conntrack": {"maxPerCore": 0},
    }


def pod_network(layout: Layout) -> dict[str, Any]:
    """The CNI plugins of a Pod's network: a bridge, addresses handed out from a folder of ours, and host ports."""
    addresses = {
        "type": "host-local",
        "dataDir": str(layout.run / "addresses"),
        "ranges": [[{"subnet": layout.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": f"pilothouse-{layout.name}", "plugins": [bridge, ports]}


def containerd(layout: Layout) -> str:
    """containerd's configuration. It may have no right to lower a process's OOM score, without which runc fails."""
    return f"""version = 2
root = "{layout.run}/containerd"
state = "{layout.runtime}"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
  address = "{layout.socket}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{layout.run}/cni"

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "{layout.runtime}/runc"
"""


PAUSE_IMAGE = "localhost/pause:1"


def dns(layout: Layout) -> str:
    """CoreDNS' configuration: the cluster's own names, and no others."""
    return f"""cluster.local:53 in-addr.arpa:53 {{
  bind {layout.address}
  ready {layout.address}:8181
  errors
  cache 5
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {kubeconfig_of(layout, "dns")}
  }}
}}
"""


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1))
    path.chmod(0o600)
