"""The one exception of this package."""


class ClusterError(Exception):
    """Something that the caller can put right: the message says what was wrong, where, and the remedy."""
