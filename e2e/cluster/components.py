"""The components of a native cluster: what each runs, in the order of their start."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.configuration import kubeconfig_of
from e2e.cluster.layout import Layout


@dataclass(frozen=True)
class Component:
    """A process of the cluster: its name on our command line, its program and that program's arguments."""

    name: str
    program: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Options:
    """What a user of `up` may choose."""

    mutating_admission_policy: bool = False


Build = Callable[[Layout, Options], dict[str, str]]


def components(layout: Layout, options: Options) -> tuple[Component, ...]:
    """All components, in the order of their start."""
    return tuple(
        Component(name, program, _flags(build(layout, options))) for name, (program, build) in _COMPONENTS.items()
    )


def names() -> tuple[str, ...]:
    """The names of all components, in the order of their start."""
    return tuple(_COMPONENTS)


def _flags(values: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"{flag}={value}" for flag, value in values.items())


def _etcd(layout: Layout, _: Options) -> dict[str, str]:
    """etcd does not wait for the disk: the data need not outlive a power failure."""
    client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
    return {
        "--data-dir": str(layout.run / "etcd"),
        "--listen-client-urls": client,
        "--advertise-client-urls": client,
        "--listen-peer-urls": peer,
        "--initial-advertise-peer-urls": peer,
        "--initial-cluster": f"default={peer}",
        "--unsafe-no-fsync": "true",
        "--log-level": "warn",
    }


def _apiserver(layout: Layout, options: Options) -> dict[str, str]:
    return {
        "--etcd-servers": "http://127.0.0.1:2379",
        "--bind-address": layout.address,
        "--advertise-address": layout.address,
        "--secure-port": "6443",
        "--service-cluster-ip-range": layout.services,
        "--authorization-mode": "Node,RBAC",
        "--enable-admission-plugins": "NodeRestriction",
        "--allow-privileged": "true",
        "--kubelet-preferred-address-types": "InternalIP",
        **_apiserver_keys(layout.pki),
        **(_MUTATING_ADMISSION_POLICY if options.mutating_admission_policy else {}),
    }


# Beta and off by default in Kubernetes 1.34.
_MUTATING_ADMISSION_POLICY = {
    "--feature-gates": "MutatingAdmissionPolicy=true",
    "--runtime-config": "admissionregistration.k8s.io/v1beta1=true",
}


def _apiserver_keys(pki: Path) -> dict[str, str]:
    return {
        "--tls-cert-file": f"{pki}/apiserver.crt",
        "--tls-private-key-file": f"{pki}/apiserver.key",
        "--client-ca-file": f"{pki}/ca.crt",
        "--service-account-key-file": f"{pki}/service-accounts.pub",
        "--service-account-signing-key-file": f"{pki}/service-accounts.key",
        "--service-account-issuer": "https://kubernetes.default.svc",
        "--kubelet-certificate-authority": f"{pki}/ca.crt",
        "--kubelet-client-certificate": f"{pki}/kubelet-client.crt",
        "--kubelet-client-key": f"{pki}/kubelet-client.key",
        "--proxy-client-cert-file": f"{pki}/front-proxy-client.crt",
        "--proxy-client-key-file": f"{pki}/front-proxy-client.key",
        "--requestheader-client-ca-file": f"{pki}/front-proxy-ca.crt",
        "--requestheader-allowed-names": "front-proxy-client",
        "--requestheader-username-headers": "X-Remote-User",
        "--requestheader-group-headers": "X-Remote-Group",
        "--requestheader-extra-headers-prefix": "X-Remote-Extra-",
    }


def _controller_manager(layout: Layout, _: Options) -> dict[str, str]:
    """The node counts as lost after 20 s without a sign of its kubelet, not after 50: tests wait for that."""
    return {
        "--kubeconfig": str(kubeconfig_of(layout, "controller-manager")),
        "--service-account-private-key-file": f"{layout.pki}/service-accounts.key",
        "--root-ca-file": f"{layout.pki}/ca.crt",
        "--cluster-signing-cert-file": f"{layout.pki}/ca.crt",
        "--cluster-signing-key-file": f"{layout.pki}/ca.key",
        "--use-service-account-credentials": "true",
        "--leader-elect": "false",
        "--allocate-node-cidrs": "true",
        "--cluster-cidr": layout.pods,
        "--node-cidr-mask-size": layout.pods.rpartition("/")[2],
        "--node-monitor-grace-period": "20s",
        "--kube-api-qps": "100",
        "--kube-api-burst": "200",
    }


def _scheduler(layout: Layout, _: Options) -> dict[str, str]:
    return {"--kubeconfig": str(kubeconfig_of(layout, "scheduler")), "--leader-elect": "false"}


def _containerd(layout: Layout, _: Options) -> dict[str, str]:
    return {"--config": f"{layout.run}/containerd.toml", "--log-level": "warn"}


def _kubelet(layout: Layout, _: Options) -> dict[str, str]:
    return {
        "--kubeconfig": str(kubeconfig_of(layout, "kubelet")),
        "--config": f"{layout.run}/kubelet.yaml",
        "--root-dir": f"{layout.run}/kubelet",
        "--hostname-override": layout.name,
        "--node-ip": layout.address,
    }


def _proxy(layout: Layout, _: Options) -> dict[str, str]:
    return {"--config": f"{layout.run}/proxy.yaml"}


def _dns(layout: Layout, _: Options) -> dict[str, str]:
    return {"-conf": f"{layout.run}/Corefile"}


def _netpol(layout: Layout, _: Options) -> dict[str, str]:
    """kube-router is here for NetworkPolicies alone."""
    return {
        "--kubeconfig": str(kubeconfig_of(layout, "netpol")),
        "--run-firewall": "true",
        "--run-router": "false",
        "--run-service-proxy": "false",
        "--run-loadbalancer": "false",
        "--hostname-override": layout.name,
        "--service-cluster-ip-range": layout.services,
        "--health-port": "20244",
    }


_COMPONENTS: dict[str, tuple[str, Build]] = {
    "etcd": ("etcd", _etcd),
    "apiserver": ("kube-apiserver", _apiserver),
    "controller-manager": ("kube-controller-manager", _controller_manager),
    "scheduler": ("kube-scheduler", _scheduler),
    "containerd": ("containerd", _containerd),
    "kubelet": ("kubelet", _kubelet),
    "proxy": ("kube-proxy", _proxy),
    "dns": ("coredns", _dns),
    "netpol": ("kube-router", _netpol),
}
