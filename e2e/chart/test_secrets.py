"""What the chart makes once: a password, and a certificate that agents accept."""

import base64
import re
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e.chart.rendering import Object, Render, containers
from pilothouse.store.bundled.settings import Settings

TLS = "pilothouse-gateway-tls"
PASSWORD = "pilothouse-postgres"  # noqa: S105


def decoded(secret: Object) -> dict[str, str]:
    return {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}


def test_the_password_is_long_new_and_one_that_the_database_takes(tmp_path: Path) -> None:
    passwords = [decoded(Render.of().one("Secret", PASSWORD))["password"] for _ in range(2)]
    assert passwords[0] != passwords[1]
    file = tmp_path / "password"
    for password in passwords:
        assert re.fullmatch(r"[A-Za-z0-9]{32}", password)
        file.write_text(password)
        assert Settings.of([str(tmp_path), "--run", str(tmp_path), "--password-file", str(file)]).password() == password


@pytest.mark.parametrize(("release", "namespace"), [("pilothouse", "pilothouse"), ("a" * 40, "b" * 63)])
def test_the_certificate_holds_for_the_gateways_names_and_for_no_other(
    release: str, namespace: str, tmp_path: Path
) -> None:
    files = decoded(Render.of(release=release, namespace=namespace).one("Secret", f"{release}-gateway-tls"))
    assert set(files) == {"ca.crt", "tls.crt", "tls.key"}, "the authority's key is nobody's"
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    service = f"{release}-gateway.{namespace}.svc"
    for host in (service, f"{service}.cluster.local"):
        assert shakes_hands(tmp_path, host)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shakes_hands(tmp_path, f"{release}-postgres.{namespace}.svc")


def test_the_certificate_outlives_the_release_as_the_agents_do_that_know_it() -> None:
    assert Render.of().one("Secret", TLS)["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def shakes_hands(folder: Path, host: str) -> bool:
    """A client as strict as Python 3.13's default meets a server with the certificate."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    client = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    client.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    ours, theirs = socket.socketpair()
    with ours, theirs, ThreadPoolExecutor(1) as other:
        waiting = other.submit(_serve, server, theirs)
        try:
            with client.wrap_socket(ours, server_hostname=host) as connection:
                return connection.recv(2) == b"ok"
        finally:
            ours.close()
            waiting.result()


def _serve(context: ssl.SSLContext, connection: socket.socket) -> None:
    try:
        with context.wrap_socket(connection, server_side=True) as wrapped:
            wrapped.sendall(b"ok")
    except OSError:
        pass  # the client has refused the certificate and says so itself


def test_one_render_makes_each_thing_once() -> None:
    render = Render.of()
    sums = {
        maker["metadata"]["name"]: maker["spec"]["template"]["metadata"]["annotations"]["checksum/secrets"]
        for maker in render.kind("Deployment", "StatefulSet")
    }
    assert sums["pilothouse-operator"] == sums["pilothouse-gateway"], "both saw the same password and certificate"
    assert sums["pilothouse-operator"] != Render.of().one("Deployment", "pilothouse-operator")["spec"]["template"][
        "metadata"]["annotations"]["checksum/secrets"], "and it changes with them"  # fmt: skip


def test_named_secrets_are_used_and_none_is_made() -> None:
    values = ("postgres.bundled.existingSecret=pw", "gateway.tls.existingSecret=cert")
    render = Render.of(*values)
    assert not render.kind("Secret")
    assert mounted(render) | referred(render) == {"pw", "cert"}
    assert render.objects == Render.of(*values).objects, "so a GitOps controller sees no change where there is none"


def mounted(render: Render) -> set[str]:
    volumes = [volume for pod in render.pods().values() for volume in pod["volumes"]]
    return {volume["secret"]["secretName"] for volume in volumes if "secret" in volume}


def referred(render: Render) -> set[str]:
    envs = [env for pod in render.pods().values() for each in containers(pod) for env in each.get("env", [])]
    return {env["valueFrom"]["secretKeyRef"]["name"] for env in envs if "valueFrom" in env}


def test_nobody_gets_a_key_that_is_not_theirs() -> None:
    keys = {
        name.split("/")[1]: [
            (volume["secret"]["secretName"], item["key"])
            for volume in pod["volumes"]
            if "secret" in volume
            for item in volume["secret"]["items"]
        ]
        for name, pod in Render.of().pods().items()
    }
    assert keys["pilothouse-operator"] == keys["pilothouse-check"] == [(TLS, "ca.crt")]
    assert keys["pilothouse-gateway"] == [(TLS, "tls.crt"), (TLS, "tls.key")]
    assert keys["pilothouse-postgres"] == [(PASSWORD, "password")]
