"""What all tests share: how hypothesis runs, and where scripts/setup installs things beside the checkout."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every run: a red run is the code's doing, and can be had again.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A shell has its background jobs ignore SIGINT, and so do all processes that they start: no test could interrupt one.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test marked `peer(name)` where the peers are not installed; `make test` always installs them."""
    peer = item.get_closest_marker("peer")
    if peer is not None and "PILOTHOUSE_PEERS" not in os.environ:
        pytest.skip(f"the wire peer {peer.args[0]} is not installed: run `make test`, or set PILOTHOUSE_PEERS")


@pytest.fixture(scope="session")
def cache() -> Path:
    """The folder for what is made once and kept between test runs."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pilothouse"
    folder = Path(os.environ.get("PILOTHOUSE_CACHE", default))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def peers() -> Path:
    """The folder of the wire peers: `bin/python` and `bin/node` run them, `node_modules/.bin` holds npm's."""
    return Path(os.environ["PILOTHOUSE_PEERS"])
