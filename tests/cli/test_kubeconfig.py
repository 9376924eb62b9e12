"""Kubeconfigs of every kind: which context is meant, and what its user is known by."""

import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilothouse.store.postgres import PostgresRunStore
from tests.cli.cluster import CERTIFICATE, CERTIFICATES, Cluster, cluster_on
from tests.cli.command import Cli
from tests.cli.test_context_refusals import refused
from tests.gateway.doubles import ANN, BOB
from tests.store.fixtures import database, postgres, server_dsn

__all__ = ["database", "postgres", "server_dsn"]

HERE = "no runs in namespace team-a\n"


@pytest.fixture
async def cluster(
    request: pytest.FixtureRequest, database: str, postgres: PostgresRunStore, tmp_path: Path
) -> AsyncIterator[Cluster]:
    certificates = getattr(request, "param", False)
    async with cluster_on(database, postgres, tmp_path, certificates=certificates) as cluster:
        yield cluster


def with_entry(file: str, kind: str, name: str, fields: dict[str, Any], **others: Any) -> None:
    """Adds a named entry to a kubeconfig, and changes other fields."""
    path = Path(file)
    document = yaml.safe_load(path.read_text())
    entries = [*document[f"{kind}s"], {"name": name, kind: fields}]
    path.write_text(yaml.safe_dump({**document, f"{kind}s": entries, **others}))


async def test_several_files_are_one_and_the_first_that_says_something_wins(cluster: Cluster) -> None:
    first = cluster.kubeconfig("first", {"token": "wrong"})
    with_entry(first, "user", "other", {"token": ANN}, contexts=[], clusters=[], **{"current-context": "far"})
    second = cluster.kubeconfig("second", {"token": ANN})
    with_entry(second, "context", "far", {"cluster": "c", "user": "other", "namespace": "team-a"})
    paths = os.pathsep.join([first, str(cluster.folder / "missing"), second])
    assert (await cluster.command("--context", "far", KUBECONFIG=paths)("get")).out == HERE
    assert (await cluster.command("--gateway", "pilothouse/pilothouse-gateway", KUBECONFIG=paths)("get")).out == HERE
    assert "does not accept the credentials" in await refused(cluster.command("--context", "dev", KUBECONFIG=paths))


async def test_files_are_named_from_where_the_kubeconfig_is(cluster: Cluster) -> None:
    """Also in a file of several."""
    folder = cluster.folder / "kube"
    folder.mkdir()
    (folder / "token").write_text(f"{ANN}\n")
    (folder / "ca.pem").write_bytes((CERTIFICATES.parents[1] / "gateway/certificates/ca.pem").read_bytes())
    cluster.kubeconfig(
        "kube/config", {"tokenFile": "token"}, certificate_authority="ca.pem", certificate_authority_data=None
    )
    relative = cluster.command("--kubeconfig", "kube/config")
    assert (await relative("get")).out == HERE
    (folder / "token").unlink()
    assert "the token file of context `dev` cannot be read: " in await refused(relative)


async def test_a_context_without_a_namespace_means_default(cluster: Cluster) -> None:
    file = cluster.kubeconfig(namespace=None)
    assert "in namespace default" in await refused(cluster.command("--kubeconfig", file))
    assert (await cluster.command("--kubeconfig", file, "-n", "team-a")("get")).out == HERE


PLUGIN = """\
import json, os, pathlib, sys
question = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
calls = pathlib.Path(sys.argv[1])
calls.write_text(calls.read_text() + json.dumps([question, os.environ.get("WHO")]) + "\\n" if calls.exists() else "\\n")
status = json.loads(sys.argv[2])[min(len(calls.read_text().splitlines()), len(json.loads(sys.argv[2]))) - 1]
print(json.dumps({"apiVersion": question["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def plugin(cluster: Cluster, *statuses: dict[str, str], version: str = "v1", **changes: Any) -> dict[str, Any]:
    """A user whose plugin answers with one status after the other, and notes what it was asked from the second on."""
    (cluster.folder / "plugin.py").write_text(PLUGIN)
    arguments = [str(cluster.folder / "plugin.py"), str(cluster.folder / "calls"), json.dumps(statuses)]
    command: dict[str, Any] = {"apiVersion": f"client.authentication.k8s.io/{version}", "command": sys.executable}
    return {"exec": {**command, "args": arguments, "env": [{"name": "WHO", "value": "ann"}], **changes}}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_plugin_issues_the_token_and_another_one_where_it_has_expired(cluster: Cluster, version: str) -> None:
    user = plugin(cluster, {"token": "expired"}, {"token": ANN}, version=version, provideClusterInfo=True)
    result = await cluster.command("--kubeconfig", cluster.kubeconfig(user=user))("get")
    assert (result.status, result.out) == (0, HERE)
    [_, asked] = (cluster.folder / "calls").read_text().splitlines()
    question, who = json.loads(asked)
    assert (question["kind"], question["apiVersion"]) == ("ExecCredential", f"client.authentication.k8s.io/{version}")
    assert (question["spec"]["interactive"], question["spec"]["cluster"]["server"], who) == (False, cluster.url, "ann")


PLUGINS = [
    ({"version": "v1alpha1"}, "speaks client.authentication.k8s.io/v1alpha1; client.authentication.k8s.io/v1 or"),
    ({"command": "no-such-plugin", "installHint": "brew install it"}, "cannot be run: No such file or directory; brew"),
    ({"args": ["-c", "import sys; sys.exit(3)"]}, "failed with exit code 3"),
    ({"args": ["-c", "print('hello')"]}, "did not print an ExecCredential with a status"),
]


@pytest.mark.parametrize(("changes", "says"), PLUGINS)
async def test_a_plugin_that_does_not_work_is_named(cluster: Cluster, changes: dict[str, Any], says: str) -> None:
    file = cluster.kubeconfig(user=plugin(cluster, {"token": ANN}, **changes))
    said = await refused(cluster.command("--kubeconfig", file))
    assert said.startswith("the credential plugin ")
    assert says in said


@pytest.mark.parametrize("cluster", [True], indirect=True)
async def test_a_certificate_opens_the_cluster_but_the_gateway_needs_a_token(cluster: Cluster) -> None:
    carol = cluster.command("--kubeconfig", cluster.kubeconfig(user=CERTIFICATE))
    assert await refused(carol) == (
        "the gateway knows its callers by their tokens, and context `dev` has none: name one with --token-file FILE, "
        "or with - for standard input, such as `kubectl --context dev create token SERVICEACCOUNT` prints"
    )
    result = await carol("get", "--token-file", "-", stdin=ANN)
    assert (result.status, result.out) == (0, HERE)
    [headers] = cluster.server.seen
    assert (headers.get("authorization"), headers["x-pilothouse-token"]) == (None, ANN)


@pytest.mark.parametrize("cluster", [True], indirect=True)
async def test_a_plugin_may_issue_a_certificate(cluster: Cluster) -> None:
    pem = {name: (CERTIFICATES / f"client.{name}").read_text() for name in ("pem", "key")}
    user = plugin(cluster, {"clientCertificateData": pem["pem"], "clientKeyData": pem["key"]})
    carol = cluster.command("--kubeconfig", cluster.kubeconfig(user=user))
    assert (await carol("get", "--token-file", "-", stdin=ANN)).out == HERE
    broken = plugin(cluster, {"clientCertificateData": "x", "clientKeyData": "y"})
    said = await refused(cluster.command("--kubeconfig", cluster.kubeconfig(user=broken)))
    assert said.startswith("the certificates of context `dev` cannot be used: ")


async def test_a_token_of_one_s_own_goes_to_the_gateway_and_not_to_the_api_server(cluster: Cluster) -> None:
    bob = cluster.command("--kubeconfig", cluster.kubeconfig(user={"token": ANN}))
    (cluster.folder / "token").write_text(BOB)
    assert "bob may not list" in await refused(bob, "--token-file", "token")
    assert [headers["x-pilothouse-token"] for headers in cluster.server.seen] == [BOB]


USERS = [
    ({"username": "ann", "password": "x"}, "has `username`, which is not supported; Kubernetes knows no passwords"),
    ({"auth-provider": {"name": "gcp"}}, "has `auth-provider`, which is not supported; kubectl dropped it, too"),
    ({"token": ANN, "as": "bob"}, "has `as`, which is not supported; name a token of that identity"),
    (
        {"client-certificate": "none.pem", "client-key": "none.key"},
        "the certificates of context `dev` cannot be used: ",
    ),
    ({"client-certificate-data": "!"}, "the certificates of context `dev` cannot be used: "),
    ({"token": 7}, "context `dev` of the kubeconfig cannot be used: "),
]


@pytest.mark.parametrize(("user", "says"), USERS)
async def test_a_user_who_cannot_be_used_is_refused_by_what_is_wrong(
    cluster: Cluster, user: dict[str, Any], says: str
) -> None:
    assert says in await refused(cluster.command("--kubeconfig", cluster.kubeconfig(user=user)))


FILES = [
    ("{", "is no YAML"),
    ("[]", "holds no object"),
    ("users: [{name: u}]", "has an entry in `users` without a `name` or a `user`"),
    ("contexts: 1", "has an entry in `contexts` without a `name` or a `context`"),
    ("{}", "the kubeconfig has no current context; name one with --context: none at all"),
    ("current-context: x", "the kubeconfig has no context `x`; it has: none at all"),
    (
        "{current-context: x, contexts: [{name: x, context: {cluster: c}}]}",
        "context `x` of the kubeconfig cannot be used: it refers to 'c', which is not there",
    ),
]


@pytest.mark.parametrize(("text", "says"), FILES)
async def test_a_kubeconfig_that_says_nothing_usable_is_refused_by_what_is_wrong(
    tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    assert says in await refused(Cli(tmp_path, ("--kubeconfig", str(file))))


async def test_a_context_or_a_file_that_is_not_there_is_named(cluster: Cluster) -> None:
    said = await refused(cluster.command("--kubeconfig", cluster.kubeconfig(), "--context", "prod"))
    assert said == "the kubeconfig has no context `prod`; it has: dev"
    missing = str(cluster.folder / "nowhere")
    assert (await refused(cluster.command("--kubeconfig", missing))).endswith(
        "cannot be read: No such file or directory"
    )
    assert await refused(cluster.command("--context", "dev", KUBECONFIG=missing)) == (
        f"there is no kubeconfig at {missing}; name one with --kubeconfig"
    )
