"""The begin of the sandbox's process; `server` tells of the rest."""

import os
import signal
from typing import NoReturn


def main() -> NoReturn:
    """As the first process of a container it hears no signal that it has not asked for, so it asks before the second
    that its imports take."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    from pilothouse.tools.sandbox.server import main as serve

    serve()


if __name__ == "__main__":
    main()
