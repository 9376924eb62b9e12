"""The objects that a native cluster starts with: the Service of its DNS, and the rights of its node's processes."""

from pathlib import Path
from string import Template

from e2e.cluster import volumes
from e2e.cluster.clients import Kubectl
from e2e.cluster.layout import Layout

_MANIFESTS = Path(__file__).parent / "manifests"


def ensure(layout: Layout) -> None:
    """Makes the objects, or what is missing of them."""
    kubectl = Kubectl(layout)
    kubectl.apply(*(_filled(file, layout) for file in sorted(_MANIFESTS.glob("*.yaml"))))
    volumes.ensure(kubectl, layout)


def _filled(file: Path, layout: Layout) -> str:
    return Template(file.read_text()).substitute(address=layout.address, dns_service=layout.dns_service)
