"""The credentials of a person: the bearer token and the client certificate that a kubeconfig's user comes with."""

import asyncio
import json
import os
import ssl
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightkube.config.client_adapter import verify_cluster
from lightkube.config.models import User

from pilothouse.store.errors import StoreUnusable
from pilothouse_operator.kube.kubeconfig import Chosen

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

_CLUSTER_INFO = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")

_PATIENCE = 120.0
"""Seconds that a credential plugin may take: it may send its user to a browser."""


@dataclass(frozen=True, slots=True)
class Issued:
    """What proves who the user is; either may be missing."""

    token: str | None = None
    certificate: tuple[str, str] | None = field(default=None, repr=False)
    """PEM: the certificate and its key, where a plugin issued one."""


class Credentials:
    """Of one context. Raises StoreUnusable where the kubeconfig's user is of a kind that is not supported, or its
    plugin fails."""

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self._issued: Issued | None = None
        for name, remedy in _UNSUPPORTED.items():
            if chosen.user.get(name):
                raise StoreUnusable(
                    f"the user of context `{chosen.name}` has `{name}`, which is not supported; {remedy}"
                )

    async def issued(self) -> Issued:
        if self._issued is None:
            self._issued = await self._issue()
        return self._issued

    async def renew(self) -> bool:
        """Gets the token anew, as it may have expired. False where it is still the same one."""
        old, self._issued = self._issued, None
        return await self.issued() != old

    async def trust(self) -> ssl.SSLContext:
        """Trusts the cluster's authority, and shows the client certificate, if there is one."""
        config = self.chosen.config
        certificate = (await self.issued()).certificate
        try:
            context = verify_cluster(config.cluster, config.user or User(), config.abs_file)
            if certificate is not None:
                _show(context, certificate)
        except (OSError, TypeError, ValueError) as error:
            raise StoreUnusable(f"the certificates of context `{self.chosen.name}` cannot be used: {error}") from None
        return context

    async def _issue(self) -> Issued:
        user = self.chosen.config.user or User()
        if user.token_file is not None:
            return Issued(_first_line(user.token_file, self.chosen.name))
        if user.token is not None:
            return Issued(user.token)
        if user.exec is not None:
            return await _plugin(self.chosen)
        return Issued()


_UNSUPPORTED = {
    "auth-provider": "kubectl dropped it, too: use a credential plugin (`exec`)",
    "username": "Kubernetes knows no passwords: use a token or a certificate",
    "as": "name a token of that identity with --token-file, in a context without it",
}


def _first_line(path: str, context: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise StoreUnusable(f"the token file of context `{context}` cannot be read: {path}: {error.strerror}") from None


async def _plugin(chosen: Chosen) -> Issued:
    """Runs the user's credential plugin. It may speak to the user over standard error."""
    command, version = chosen.user["exec"]["command"], chosen.user["exec"].get("apiVersion")
    if version not in _VERSIONS:
        raise StoreUnusable(f"the credential plugin {command} speaks {version}; {' or '.join(_VERSIONS)} is needed")
    output = await _run(chosen)
    try:
        status = json.loads(output)["status"]
        certificate = (status["clientCertificateData"], status["clientKeyData"]) if _has_certificate(status) else None
        return Issued(status.get("token") or None, certificate)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StoreUnusable(f"the credential plugin {command} did not print an ExecCredential with a status") from None


async def _run(chosen: Chosen) -> bytes:
    plugin = chosen.user["exec"]
    command = [plugin["command"], *(plugin.get("args") or [])]
    given = {entry["name"]: entry["value"] for entry in plugin.get("env") or []}
    environment = {**os.environ, **given, "KUBERNETES_EXEC_INFO": json.dumps(_question(chosen))}
    try:
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    except OSError as error:
        hint = plugin.get("installHint") or "install it, or name another context"
        raise StoreUnusable(f"the credential plugin {command[0]} cannot be run: {error.strerror}; {hint}") from None
    try:
        async with asyncio.timeout(_PATIENCE):
            output, _ = await process.communicate()
    except TimeoutError:
        raise StoreUnusable(f"the credential plugin {command[0]} did not end within {_PATIENCE:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise StoreUnusable(f"the credential plugin {command[0]} failed with exit code {process.returncode}")
    return output


def _question(chosen: Chosen) -> Mapping[str, Any]:
    """What the plugin is told: whether somebody can answer it, and of the cluster what it wants to know."""
    plugin = chosen.user["exec"]
    spec: dict[str, Any] = {"interactive": sys.stdin.isatty() and plugin.get("interactiveMode") != "Never"}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = {name: chosen.cluster[name] for name in _CLUSTER_INFO if name in chosen.cluster}
    return {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": spec}


def _has_certificate(status: Mapping[str, Any]) -> bool:
    return bool(status.get("clientCertificateData") and status.get("clientKeyData"))


def _show(context: ssl.SSLContext, certificate: tuple[str, str]) -> None:
    """Has the context show a certificate, which OpenSSL reads from files alone."""
    with tempfile.TemporaryDirectory(prefix="pilothouse-") as folder:  # of mode 0700
        files = [Path(folder) / name for name in ("certificate", "key")]
        for file, text in zip(files, certificate, strict=True):
            file.write_text(text)
        context.load_cert_chain(str(files[0]), str(files[1]))
