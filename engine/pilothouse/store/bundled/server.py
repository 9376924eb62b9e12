"""The server's process and its supervisor."""

import signal
import subprocess
import sys
import time

from pilothouse.store.bundled.programs import Programs
from pilothouse.store.bundled.settings import Settings
from pilothouse.store.bundled.volume import held, prepare_data

_WHO_MAY = """\
local all        postgres                 trust
host  pilothouse pilothouse   all         scram-sha-256
"""
"""Whoever is not named is refused. The socket's folder is closed to all but its owner."""

_TUNING = {
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "256MB",
    "jit": "off",
    "max_parallel_workers": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
"""One small server without standbys. Parallel queries would need more shared memory than a container has. `fsync`,
`synchronous_commit` and `full_page_writes` stay on: what was committed is on the volume."""

_PATIENCE = 60.0
"""Seconds that an earlier server of this volume may take to end."""

_PAUSE = 0.1
"""Seconds between two questions whether the server takes connections."""


class Supervisor:
    """Runs the server until it ends, or until this process is told to end."""

    def __init__(self, settings: Settings, programs: Programs) -> None:
        self._settings = settings
        self._programs = programs
        self._server: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Returns the exit code: 0 after an orderly stop. Raises StoreUnusable where the server cannot start."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        self._settings.ready.unlink(missing_ok=True)
        with held(self._settings, _PATIENCE) as lock:
            self._prepare()
            with subprocess.Popen(self._command(), pass_fds=(lock,)) as self._server:  # noqa: S603
                self._announce(self._server)
                code = self._server.wait()
        self._settings.ready.unlink(missing_ok=True)
        return code if code >= 0 else 128 - code

    def _prepare(self) -> None:
        self._settings.run.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._settings.hba.write_text(_WHO_MAY)
        prepare_data(self._settings, self._programs)

    def _command(self) -> list[str]:
        settings = self._settings
        options = _TUNING | {
            "listen_addresses": "*",
            "port": str(settings.port),
            "unix_socket_directories": str(settings.run),
            "unix_socket_permissions": "0700",
            "hba_file": str(settings.hba),
            "max_connections": str(settings.max_connections),
            "shared_buffers": settings.shared_buffers,
        }
        given = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        return [self._programs.server, "-D", str(settings.data), *given]

    def _announce(self, server: subprocess.Popen[bytes]) -> None:
        while server.poll() is None:
            if self._programs.takes_connections(self._settings.run, self._settings.port):
                self._settings.ready.touch()
                return
            time.sleep(_PAUSE)

    def _stop(self, *_: object) -> None:
        """SIGINT asks PostgreSQL for what it calls a fast shutdown; before there is a server, nothing needs order."""
        if self._server is None:
            sys.exit(0)
        self._server.send_signal(signal.SIGINT)
