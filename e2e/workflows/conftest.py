"""What holds after every test here."""

from collections.abc import Iterator

import pytest

from e2e.cluster.clients import Kubectl
from e2e.release import Release
from pilothouse.api.conditions import check_object

KINDS = "agents,packs,toolapprovals,workflows"


@pytest.fixture(autouse=True)
def kstatus(request: pytest.FixtureRequest, release: Release, kubectl: Kubectl) -> Iterator[None]:
    """Every object that the test leaves behind keeps the rules of kstatus."""
    if "namespace" in request.fixturenames:
        request.getfixturevalue("namespace")  # so that its objects are there still
    yield
    for found in kubectl.items(KINDS, "--all-namespaces"):
        assert check_object(found) == [], f"{found['kind']} {found['metadata']['name']}"
