"""A renewed certificate is shown without a restart, and one that cannot be used never takes the place of a good one."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.responses import Response

from pilothouse.gateway import certificate
from pilothouse.gateway.server import Listen, serving
from tests.gateway.serving import CERTIFICATES, LISTEN


@dataclass
class Gateway:
    """One that serves, and the files of its certificate."""

    port: int
    certificate: Path
    key: Path

    async def shown(self) -> str:
        """The certificate that a new connection is shown."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection(LISTEN.host, self.port, ssl=context)
        try:
            return ssl.DER_cert_to_PEM_cert(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        finally:
            writer.transport.abort()

    async def shows(self, name: str) -> None:
        """Returns once it is the certificate of that name."""
        while await self.shown() != (CERTIFICATES / f"{name}.pem").read_text():
            pass

    def given(self, *, certificate: str, key: str) -> None:
        self.certificate.write_bytes((CERTIFICATES / f"{certificate}.pem").read_bytes())
        self.key.write_bytes((CERTIFICATES / f"{key}.key").read_bytes())


@pytest.fixture
async def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gateway]:
    monkeypatch.setattr(certificate, "PAUSE", 0.01)
    gateway = Gateway(0, tmp_path / "tls.crt", tmp_path / "tls.key")
    gateway.given(certificate="server", key="server")
    listen = Listen(0, gateway.certificate, gateway.key, host=LISTEN.host)
    async with serving(Response(), listen) as gateway.port:
        yield gateway


async def test_a_renewed_certificate_is_shown_to_new_connections(gateway: Gateway) -> None:
    await gateway.shows("server")
    gateway.given(certificate="renewed", key="renewed")
    await gateway.shows("renewed")


@pytest.mark.parametrize("trouble", ["a certificate without its key", "no certificate", "no file"])
async def test_what_cannot_be_used_is_told_of_and_the_old_certificate_stays(
    gateway: Gateway, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = asyncio.Event()

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno == logging.WARNING:
                told.set()

    monkeypatch.setattr(logging.getLogger(certificate.__name__), "handlers", [Told()])
    match trouble:
        case "a certificate without its key":
            gateway.given(certificate="renewed", key="server")
        case "no certificate":
            gateway.certificate.write_text("renewed")
        case "no file":
            gateway.certificate.unlink()
    await told.wait()
    await gateway.shows("server")
    gateway.given(certificate="renewed", key="renewed")
    await gateway.shows("renewed")
