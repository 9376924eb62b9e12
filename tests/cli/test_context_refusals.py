"""What keeps a cluster's runs from being read, and what is said of it: the cause and the remedy, in one line."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.store.postgres import PostgresRunStore
from tests.cli import command
from tests.cli.apiserver import PROXY
from tests.cli.cluster import Cluster, cluster_on
from tests.cli.command import Cli
from tests.gateway.doubles import ANN, BOB
from tests.gateway.serving import CERTIFICATES as SERVERS
from tests.store.fixtures import database, postgres, server_dsn

__all__ = ["database", "postgres", "server_dsn"]

NOWHERE = "https://127.0.0.1:1"


@pytest.fixture
async def cluster(database: str, postgres: PostgresRunStore, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster_on(database, postgres, tmp_path, certificates=False) as cluster:
        yield cluster


async def refused(cli: Cli, *arguments: str) -> str:
    """What a command says that cannot be carried out: one line, and nothing else."""
    result = await cli("get", *arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("pilothouse: ")
    assert result.err.count("\n") == 1
    return result.err.removeprefix("pilothouse: ").rstrip()


async def test_a_cluster_that_cannot_be_reached_or_trusted(cluster: Cluster) -> None:
    away = cluster.command("--kubeconfig", cluster.kubeconfig(server=NOWHERE))
    said = await refused(away)
    assert said.startswith(f"the cluster of context `dev` at {NOWHERE} cannot be reached: ")
    strange = cluster.kubeconfig(certificate_authority_data=None, certificate_authority=pem("other-ca"))
    said = await refused(cluster.command("--kubeconfig", strange))
    assert said.startswith(f"the cluster of context `dev` at {cluster.url} cannot be trusted: ")
    assert not cluster.server.seen, "no token was shown"
    said = await refused(cluster.command("--kubeconfig", cluster.kubeconfig(server="nonsense")))
    assert said.endswith("is no URL of a server")


async def test_a_gateway_that_is_elsewhere_or_not_ready(cluster: Cluster) -> None:
    said = await refused(cluster.cli, "--gateway", "tools/my-gateway")
    assert said == (
        "namespace tools has no Service my-gateway with a port named https: is Pilothouse installed elsewhere? "
        "--gateway NAMESPACE/SERVICE names its gateway"
    )
    for wrong in ("my-gateway", "a/b/c", "http://gateway.example.com", "https://", "https://me@example.com"):
        assert (await refused(cluster.cli, "--gateway", wrong)).startswith(f"--gateway {wrong}: ")
    cluster.server.gateway = None
    said = await refused(cluster.cli)
    assert 'HTTP 503 no endpoints available for service "https:pilothouse-gateway:https"' in said


async def test_credentials_that_the_cluster_does_not_know(cluster: Cluster) -> None:
    stranger = cluster.command("--kubeconfig", cluster.kubeconfig(user={"token": "expired"}))
    assert await refused(stranger) == (
        "the cluster does not accept the credentials of context `dev`: sign in as you do for kubectl; "
        "`kubectl --context dev auth whoami` tells whether it knows you"
    )


async def test_rights_that_are_missing_at_the_api_server_and_at_the_gateway(cluster: Cluster) -> None:
    bob = cluster.command("--kubeconfig", cluster.kubeconfig(user={"token": BOB}))
    said = await refused(bob)
    assert 'User "bob" cannot get resource "services/proxy"' in said
    asked = "auth can-i get services/https:pilothouse-gateway:https --subresource=proxy -n pilothouse"
    assert said.endswith(f"`kubectl --context dev {asked}` must say yes")
    cluster.server.rights.add(f"bob {PROXY}")
    assert await refused(bob, "-n", "team-a") == (
        "bob may not list workflows.pilothouse.dev in namespace team-a; "
        "`kubectl auth can-i list workflows.pilothouse.dev -n team-a` tells the same"
    )


async def test_a_token_that_the_gateway_does_not_know(cluster: Cluster) -> None:
    token = cluster.folder / "token"
    token.write_text("unknown\n")
    said = await refused(cluster.cli, "--token-file", str(token))
    assert said.startswith("the gateway does not accept the token: it has expired, or the cluster does not know it")
    for text in ("", "two words", "é"):
        token.write_text(text)
        assert (await refused(cluster.cli, "--token-file", str(token))).endswith("what it holds is no token")
    token.unlink()
    assert (await refused(cluster.cli, "--token-file", str(token))).endswith(
        "cannot be used: No such file or directory"
    )


async def test_a_gateway_that_cannot_ask_or_serve(cluster: Cluster) -> None:
    cluster.kube.away = True
    said = await refused(cluster.cli)
    assert said.startswith("the gateway cannot serve now: the Kubernetes API server gives no answer")


async def test_what_answers_but_is_no_gateway(cluster: Cluster) -> None:
    """The API server itself, asked as if it were one."""
    direct = cluster.command("--kubeconfig", cluster.kubeconfig(), SSL_CERT_FILE=pem("ca"))
    said = await refused(direct, "--gateway", cluster.url)
    assert said == f"what answers at {cluster.url} is no gateway of Pilothouse: HTTP 404 Not Found"


async def test_a_gateway_is_reached_by_its_url_with_a_token_alone(cluster: Cluster) -> None:
    token = cluster.folder / "token"
    token.write_text(ANN)
    direct = cluster.command("--gateway", cluster.gateway, "--token-file", str(token), SSL_CERT_FILE=pem("ca"))
    result = await direct("get", "-n", "team-a")
    assert (result.status, result.out) == (0, "no runs in namespace team-a\n")
    piped = cluster.command("--gateway", cluster.gateway, "--token-file", "-", SSL_CERT_FILE=pem("ca"))
    assert (await piped("get", "-n", "team-a", stdin=ANN + "\n")).out == result.out
    assert "in namespace default" in await refused(direct)
    untrusted = cluster.command("--gateway", cluster.gateway, "--token-file", str(token))
    assert (await refused(untrusted)).startswith(f"the gateway at {cluster.gateway} cannot be trusted: ")


async def test_options_of_this_machine_and_of_a_cluster_are_not_mixed(cluster: Cluster) -> None:
    for option in ("--state", "--dsn"):
        result = await cluster.cli("get", option, "x")
        assert result.status == 2
        assert f"{option} names runs of this machine" in result.err
    by_environment = cluster.command("--kubeconfig", cluster.kubeconfig(), PILOTHOUSE_DSN="x", PILOTHOUSE_STATE="y")
    assert (await by_environment("get")).status == 0


async def test_without_what_a_cluster_needs_it_is_said_what_to_install(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import sys; sys.modules['lightkube'] = None; from pilothouse.cli.main import main; main()"
    monkeypatch.setattr(command, "PROGRAM", (sys.executable, "-c", code))
    said = await refused(cluster.cli)
    assert said.startswith("reading a cluster needs more than is installed (lightkube")
    assert said.endswith("pip install 'pilothouse[operator]'")


def pem(name: str) -> str:
    """The path of a certificate."""
    return str(SERVERS.absolute() / f"{name}.pem")
