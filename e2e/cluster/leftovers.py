"""What the containers of a cluster leave on this machine outside of its folders: no setting puts it elsewhere."""

from pathlib import Path

from e2e.cluster.configuration import pod_network
from e2e.cluster.layout import Layout

CNI_RESULTS = Path("/var/lib/cni/results")
LOG_LINKS = Path("/var/log/containers")


def remove(layout: Layout) -> None:
    """Removes it; the cluster's own folders must be there still, as they tell what is its own."""
    _remove_shim_sockets(layout)
    _remove_cni_results(layout)
    _remove_log_links(layout)


def _remove_shim_sockets(layout: Layout) -> None:
    """Each container's bundle names the socket of its shim, which all containerds of a machine have in one folder."""
    for address in layout.runtime.glob("io.containerd.runtime.v2.task/*/*/address"):
        Path(address.read_text().removeprefix("unix://")).unlink(missing_ok=True)


def _remove_cni_results(layout: Layout) -> None:
    """libcni notes what it did for each Pod, on our network and on its loopback."""
    network = pod_network(layout)["name"]
    for result in CNI_RESULTS.glob(f"{network}-*-eth0"):
        pod = result.name.removeprefix(f"{network}-").removesuffix("-eth0")
        for each in CNI_RESULTS.glob(f"*-{pod}-*"):
            each.unlink()


def _remove_log_links(layout: Layout) -> None:
    for link in LOG_LINKS.glob("*"):
        if link.is_symlink() and link.readlink().is_relative_to(layout.run):
            link.unlink()
