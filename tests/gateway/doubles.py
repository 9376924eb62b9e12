"""A Kubernetes that knows the tokens that a test made, for tests of the store API."""

from dataclasses import dataclass, field
from uuid import UUID, uuid4

from pilothouse.gateway.admission import AUDIENCE
from pilothouse.gateway.kubeapi import Identity, KubeUnavailable, Unauthenticated

POD_UID = "authentication.kubernetes.io/pod-uid"


@dataclass
class FakeKube:
    """Implements KubeApi, as far as the store API asks anything of it. Tokens are known by their audience."""

    tokens: dict[tuple[str, str | None], Identity] = field(default_factory=dict)
    away: bool = False
    reviews: int = 0

    async def review(self, token: str, audience: str | None = None) -> Identity:
        self.reviews += 1
        if self.away:
            raise KubeUnavailable("the API server cannot be reached")
        if (token, audience) not in self.tokens:
            raise Unauthenticated("token review")
        return self.tokens[token, audience]

    async def allowed(
        self,
        identity: Identity,
        verb: str,
        group: str,
        resource: str,
        namespace: str,
        name: str = "",
        subresource: str = "",
    ) -> bool:
        raise NotImplementedError

    async def namespace_uid(self, name: str) -> UUID | None:
        raise NotImplementedError

    def pod(self, uid: str, namespace: str = "team-a", audience: str = AUDIENCE) -> str:
        """The projected token of a Pod that is there."""
        token = f"projected-{uuid4()}"
        self.tokens[token, audience] = service_account(namespace, {POD_UID: (uid,)})
        return token

    def delete(self, token: str) -> None:
        """The Pod of the token is gone, and so the token is nobody's."""
        self.tokens = {key: identity for key, identity in self.tokens.items() if key[0] != token}


def service_account(namespace: str, extra: dict[str, tuple[str, ...]]) -> Identity:
    username = f"system:serviceaccount:{namespace}:default"
    return Identity(username, str(uuid4()), ("system:serviceaccounts", "system:authenticated"), extra)
