"""What the fault tests share."""

import pytest

from e2e.cluster import volumes
from e2e.cluster.clients import Kubectl
from e2e.cluster.layout import Layout


@pytest.fixture(autouse=True)
def _volumes(kubectl: Kubectl, layout: Layout) -> None:
    """A free volume for the witness of each test."""
    volumes.ensure(kubectl, layout)
