"""A Kubernetes that knows the tokens, rights and namespaces that a test makes and takes away."""

from dataclasses import dataclass, field
from uuid import UUID, uuid4

from pilothouse.gateway.admission import AUDIENCE
from pilothouse.gateway.kubeapi import Identity, KubeUnavailable, Unauthenticated

ANN, BOB = "ann-s-token", "bob-s-token"
POD_UID = "authentication.kubernetes.io/pod-uid"


@dataclass
class FakeKube:
    """Implements KubeApi. Tokens are known by their audience; from the start, those of two people. A grant is
    `user verb resource namespace` or the same with `name`; without a name it is good for every one, as in RBAC."""

    tokens: dict[tuple[str, str | None], Identity] = field(
        default_factory=lambda: {(ANN, None): Identity("ann"), (BOB, None): Identity("bob")}
    )
    grants: set[str] = field(default_factory=set)
    namespaces: dict[str, UUID] = field(default_factory=dict)
    away: bool = False
    reviews: int = 0

    async def review(self, token: str, audience: str | None = None) -> Identity:
        self.reviews += 1
        self._answer()
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
        self._answer()
        assert group == {"workflows": "pilothouse.dev", "sessions": "pilothouse.dev", "pods": ""}[resource]
        what = f"{resource}/{subresource}" if subresource else resource
        right = f"{identity.username} {verb} {what} {namespace}"
        return bool({right, f"{right} {name}" if name else right} & self.grants)

    async def namespace_uid(self, name: str) -> UUID | None:
        self._answer()
        return self.namespaces.get(name)

    def pod(self, uid: str, namespace: str = "team-a", audience: str = AUDIENCE) -> str:
        """The projected token of a Pod that is there."""
        token = f"projected-{uuid4()}"
        self.tokens[token, audience] = service_account(namespace, {POD_UID: (uid,)})
        return token

    def delete(self, token: str) -> None:
        """The Pod of the token is gone, and so the token is nobody's."""
        self.tokens = {key: identity for key, identity in self.tokens.items() if key[0] != token}

    def grant(self, user: str, namespace: str, *rights: str) -> None:
        """Each right as `get workflows`, `get pods/log`, `get workflows nightly`."""
        for right in rights:
            verb, resource, *name = right.split()
            self.grants.add(" ".join([user, verb, resource, namespace, *name]))

    def create_namespace(self, name: str) -> UUID:
        """Makes a namespace, or makes it anew."""
        self.namespaces[name] = uuid4()
        return self.namespaces[name]

    def _answer(self) -> None:
        if self.away:
            raise KubeUnavailable("the API server cannot be reached")


def service_account(namespace: str, extra: dict[str, tuple[str, ...]]) -> Identity:
    username = f"system:serviceaccount:{namespace}:default"
    return Identity(username, str(uuid4()), ("system:serviceaccounts", "system:authenticated"), extra)
