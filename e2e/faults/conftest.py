"""What the fault tests share."""

import pytest

from e2e.cluster import volumes
from e2e.cluster.clients import Kubectl
from e2e.cluster.clusters import Cluster
from e2e.cluster.layout import Layout
from e2e.faults.strikes import Strikes
from e2e.release import Release


@pytest.fixture(autouse=True)
def _volumes(kubectl: Kubectl, layout: Layout) -> None:
    """A free volume for the witness of each test."""
    volumes.ensure(kubectl, layout)


@pytest.fixture
def strikes(release: Release, cluster: Cluster) -> Strikes:
    """What can be done to the parts of the release and of the node."""
    return Strikes(release, cluster)
