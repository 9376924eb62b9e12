"""The certificate that the gateway shows, taken up anew when its files change: whoever issues it renews it before it
expires, and nobody is there then to restart the gateway."""

import asyncio
import logging
import ssl
from pathlib import Path

PAUSE = 30.0
"""Seconds between two looks at the files."""

_log = logging.getLogger(__name__)


class Renewal:
    """Of the certificate in these files, which must not have been read before. Raises OSError where they cannot be."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = certificate, key
        self._shown = self._read()

    async def watch(self, context: ssl.SSLContext) -> None:
        """New connections through `context` are shown what the files hold now. Files that do not belong together are
        told of, and the old certificate stays."""
        while True:
            await asyncio.sleep(PAUSE)
            try:
                self._look(context)
            except OSError as error:
                _log.warning("the certificate is not renewed, for its files cannot be used: %s", error)

    def _look(self, context: ssl.SSLContext) -> None:
        found = self._read()
        if found != self._shown:
            # Tried first: a context that is given a certificate without its key is left with neither.
            for each in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
                each.load_cert_chain(*self._files)
            self._shown = found
            _log.info("the certificate was renewed")

    def _read(self) -> list[bytes]:
        return [file.read_bytes() for file in self._files]
