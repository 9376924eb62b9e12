"""Service accounts as people who use the command line: a kubeconfig with their token, and their rights."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from e2e.cluster.clients import Kubectl
from e2e.cluster.layout import CONTEXT

REFUSED = 2
"""Exit code of a command that could not read what it was asked for."""

READ = {"apiGroups": ["pilothouse.dev"], "resources": ["workflows"], "verbs": ["get", "list"]}
LOGS = {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}


@dataclass(frozen=True)
class Account:
    """Somebody with an account; `kubeconfig` has a context that is theirs."""

    name: str
    kubeconfig: Path

    @classmethod
    def of(cls, kubectl: Kubectl, name: str, folder: Path, *rules: Mapping[str, Any]) -> "Account":
        """Makes the account in the namespace of `kubectl`, with these rights there."""
        kubectl("create", "serviceaccount", name)
        if rules:
            kubectl.apply(_role(name, rules))
            account = f"--serviceaccount={kubectl.namespace}:{name}"
            kubectl("create", "rolebinding", name, f"--role={name}", account)
        config = yaml.safe_load(kubectl.layout.kubeconfig.read_text())
        token = kubectl("create", "token", name, "--duration=1h").strip()
        config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
        path = folder / f"{name}.kubeconfig"
        path.write_text(json.dumps(config))
        return cls(name, path)

    def pilothouse(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs the command line, on the cluster."""
        program = Path(sys.executable).with_name("pilothouse")
        where = ("--kubeconfig", str(self.kubeconfig), "--context", CONTEXT)
        return subprocess.run([program, *words, *where], capture_output=True, text=True, timeout=60, check=False)

    def reads(self, *words: str) -> str:
        """What a command prints, which must work."""
        done = self.pilothouse(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *words: str) -> str:
        """What a command says that does not work. It prints nothing else."""
        done = self.pilothouse(*words)
        assert (done.returncode, done.stdout) == (REFUSED, "")
        return done.stderr


def _role(name: str, rules: tuple[Mapping[str, Any], ...]) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": list(rules)}
