"""`python -I -m pilothouse.store.bundled`: see the package."""

import sys

from pilothouse.store.bundled.programs import Programs
from pilothouse.store.bundled.server import Supervisor
from pilothouse.store.bundled.settings import Settings
from pilothouse.store.errors import StoreUnusable


def main() -> None:
    settings = Settings.of()
    try:
        sys.exit(Supervisor(settings, Programs.find()).run())
    except StoreUnusable as error:
        sys.exit(f"the bundled database does not start: {error}")


if __name__ == "__main__":
    main()
