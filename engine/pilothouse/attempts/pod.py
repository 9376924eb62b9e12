"""The process of a Pod's `agent` container: carries out the attempt that the Pod was made for, and records its outcome.

    python -I -m pilothouse.attempts.pod

`settings` says what it reads from its environment and which files it expects. Exit status:

    0     the attempt has its outcome, whatever that is, or another attempt has taken its place
    1     it could not be carried out at all; standard error says why, and so does the attempt's row if it was reached
    143   SIGTERM: the turn was closed, and nothing was decided
"""

import os
import signal
import sys

TERMINATED = 128 + signal.SIGTERM


def main() -> int:
    """As the first process of a container it hears no signal that it has not asked for, so it asks before the second
    that its imports take."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(TERMINATED))
    from pilothouse.attempts.process import carry_out

    return carry_out(os.environ)


if __name__ == "__main__":
    sys.exit(main())
