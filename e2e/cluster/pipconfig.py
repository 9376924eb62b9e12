"""How pip reaches its index from within a build: the way that this machine's own pip is set up for."""

import ast
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.errors import ClusterError

_ROOTS = Path("/etc/ssl/certs/ca-certificates.crt")
# What says where the index is and how patient to be. The others, such as folders of wheels, mean nothing in a build.
_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")


def secrets(folder: Path) -> list[str]:
    """The build secrets `pip` and `roots` as buildah takes them; written to the folder, readable by root alone."""
    settings = parse(_listing())
    roots = Path(settings.get("cert") or os.environ.get("SSL_CERT_FILE") or _ROOTS)
    configuration = folder / "pip.conf"
    configuration.touch(mode=0o600)
    configuration.write_text(render(settings, trusted=roots.is_file()))
    return [f"id=pip,src={configuration}", *([f"id=roots,src={roots}"] if roots.is_file() else [])]


def _listing() -> str:
    """What pip is set up for; a Python without pip has no settings of it."""
    try:
        return run(sys.executable, "-m", "pip", "config", "list")
    except ClusterError:
        return ""


def parse(listing: str) -> dict[str, str]:
    """The settings in the answer of `pip config list`; those of the environment win, as they do for pip."""
    found = re.findall(r"^(\S+?)\.([\w-]+)=(.*)$", listing, re.MULTILINE)
    ranked = sorted((section == ":env:", key, value) for section, key, value in found if section in ("global", ":env:"))
    return {key: str(ast.literal_eval(value)) for _, key, value in ranked}


def render(settings: Mapping[str, str], *, trusted: bool) -> str:
    """The configuration file within the build, where the roots to trust are the secret `roots`."""
    lines = [f"{key} = {' '.join(settings[key].split())}" for key in _SETTINGS if key in settings]
    return "\n".join(["[global]", *lines, *(["cert = /run/secrets/roots"] if trusted else [])]) + "\n"
