"""What the long fault runs share."""

from collections.abc import Iterator

import pytest

from e2e.cluster.clients import Kubectl
from e2e.faults.soak.toll import Toll, table
from e2e.faults.strikes import Strikes
from e2e.faults.witness import Witness


@pytest.fixture
def witness(strikes: Strikes, kubectl: Kubectl, namespace: str, our_image: str) -> Witness:
    """Hears all that the runs of a test do. Nothing is broken yet."""
    strikes.whole()
    return Witness.of(kubectl.within(namespace), our_image)


@pytest.fixture(scope="session")
def tolls() -> Iterator[list[Toll]]:
    """Takes what each test has to tell; all of it is printed at the end."""
    told: list[Toll] = []
    yield told
    print("", *table(told), sep="\n")
