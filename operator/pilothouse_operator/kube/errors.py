"""How a call of the Kubernetes API can fail."""

import re

_RESOURCES = re.compile(r"failed quota: .* must specify |(minimum|maximum) \S+ usage per |limit to request ratio per ")


class KubeError(Exception):
    """Something is wrong with a call, or with the API server."""


class ApiUnavailable(KubeError):  # noqa: N818 - says what happened
    """The API server cannot be reached or cannot serve now. Nothing is known of the call's effect; try again."""


class AlreadyExists(KubeError):  # noqa: N818 - says what happened
    """An object of that name is there."""


class Changed(KubeError):  # noqa: N818 - says what happened
    """The object is another one than was meant: it has another UID, or has changed since."""


class Refused(KubeError):  # noqa: N818 - says what happened
    """The API server refuses the call. `forbidden`: for want of rights, by a policy, a quota or an admission rule."""

    def __init__(self, message: str, *, forbidden: bool = False) -> None:
        super().__init__(message)
        self.forbidden = forbidden

    @property
    def by_quota(self) -> bool:
        """A quota has no room now, or is so new that nobody has counted yet; it may have room later."""
        return self.forbidden and any(sign in str(self) for sign in ("exceeded quota", "status unknown for quota"))

    @property
    def by_resources(self) -> bool:
        """A LimitRange or a quota does not take what the Pod's containers ask for, or that they ask for nothing."""
        return self.forbidden and bool(_RESOURCES.search(str(self)))

    @property
    def by_policy(self) -> bool:
        """An admission plugin, policy or webhook says no. The latter two do so with a code of their choice, and it is
        400 or 422 where they choose none."""
        return self.forbidden or "denied request" in str(self) or "denied the request" in str(self)

    @property
    def terminating(self) -> bool:
        """The namespace is being deleted, or is gone: nothing new may be made in it."""
        gone = str(self).startswith("namespaces ") and str(self).endswith(" not found")
        return gone or (self.forbidden and "because it is being terminated" in str(self))

    @property
    def lacks_account(self) -> bool:
        """The Pod's service account is not there; in a new namespace it takes a moment until one is."""
        return self.forbidden and "error looking up service account" in str(self)

    @property
    def lacks_rights(self) -> bool:
        """RBAC grants the caller no such right."""
        return self.forbidden and 'User "' in str(self) and "cannot" in str(self)
