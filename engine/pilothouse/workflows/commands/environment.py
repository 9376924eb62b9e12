"""The variables of a command under our entry point, on this machine and in a Pod alike."""


def defaults(work: str) -> dict[str, str]:
    """What a command has where nobody says otherwise. `work` is its directory."""
    return {"HOME": work, "LANG": "C.UTF-8"}
