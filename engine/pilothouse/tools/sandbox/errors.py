"""What can go wrong between an agent and its sandbox."""

# ruff: noqa: N818 (each name says what happened)


class SandboxError(Exception):
    """Base of every error of the sandbox."""


class RequestError(SandboxError):
    """The sandbox answered that it could not do what was asked; it goes on serving."""


class PathRefused(RequestError):
    """The path leads out of the workspace, or names something that is not a plain file or directory."""


class PathNotFound(RequestError):
    """Nothing in the workspace has this path."""


class TooLarge(RequestError):
    """A file, an archive or a request is over its size limit."""


class CommandRefused(RequestError):
    """The command could not be started: not found, not executable, or not a valid argument list."""


class ArchiveRefused(RequestError):
    """The archive holds something that a workspace snapshot never holds; nothing was changed."""


class OperationFailed(RequestError):
    """The operating system refused: disk full, permission denied and the like."""


class SandboxLost(SandboxError):
    """The sandbox has gone away, or did not answer in time; what it was doing has an unknown outcome."""


class ProtocolError(SandboxError):
    """The other side broke the protocol, or speaks another version of it; the connection is closed."""


class SealUnavailable(SandboxError):
    """The kernel or the library cannot seal the sandbox; the message says what is missing."""


ANSWERS: dict[str, type[RequestError]] = {
    kind.__name__: kind
    for kind in (PathRefused, PathNotFound, TooLarge, CommandRefused, ArchiveRefused, OperationFailed)
}
"""The errors that travel in an `error` frame, by the name they travel under."""
