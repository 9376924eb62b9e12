"""The Pod of an agent: who may reach what in it."""

import json
from typing import Any

from pilothouse_operator.agentpod import AGENT_USER, AUDIENCE, MODEL, SANDBOX_USER, SECRETS, SOCKETS, STORE
from pilothouse_operator.names import ROLE
from pilothouse_operator.pods import GROUP_ID, PYTHON
from tests.operator.attempts import agent_pod, env_of, mounts_of, volumes_of

KEY = {"secretKeyRef": {"name": "keys", "key": "openai"}}
MODELLED = {"provider": "OpenAI", "name": "m", "apiKeyFrom": KEY}
SHELL = [{"builtin": "shell"}]


def parts(pod: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The agent and its sandbox."""
    (agent,), (sandbox,) = pod["spec"]["containers"], pod["spec"]["initContainers"]
    return agent, sandbox


def test_the_token_is_for_the_store_alone_and_only_the_agent_has_it() -> None:
    pod = agent_pod(tools=SHELL)
    agent, sandbox = parts(pod)
    (source,) = volumes_of(pod)["store"]["projected"]["sources"]
    assert source == {"serviceAccountToken": {"audience": AUDIENCE, "expirationSeconds": 3600, "path": "token"}}
    assert AUDIENCE == "pilothouse-store"
    assert mounts_of(agent)[STORE] == ("store", True)
    assert "store" not in {name for name, _ in mounts_of(sandbox).values()}


def test_the_models_key_is_a_file_of_the_agent_and_stands_nowhere_else() -> None:
    pod = agent_pod(model=MODELLED, tools=SHELL)
    agent, sandbox = parts(pod)
    assert volumes_of(pod)["model"]["secret"] == {"secretName": "keys", "items": [{"key": "openai", "path": "key"}]}
    assert mounts_of(agent)[MODEL] == ("model", True)
    assert "model" not in {name for name, _ in mounts_of(sandbox).values()}
    assert "secretKeyRef" not in json.dumps([agent["env"], sandbox["env"]])
    assert MODEL not in mounts_of(agent_pod()["spec"]["containers"][0])


def test_they_share_one_folder_which_the_sandbox_cannot_write() -> None:
    pod = agent_pod(tools=SHELL)
    agent, sandbox = parts(pod)
    assert mounts_of(agent)[SOCKETS] == ("sockets", False)
    assert mounts_of(sandbox)[SOCKETS] == ("sockets", True)
    assert volumes_of(pod)["sockets"]["emptyDir"]["medium"] == "Memory"
    shared = {name for name, _ in mounts_of(agent).values()} & {name for name, _ in mounts_of(sandbox).values()}
    assert shared == {"sockets"}


def test_each_has_a_user_of_its_own_and_both_one_group() -> None:
    pod = agent_pod(tools=SHELL)
    agent, sandbox = parts(pod)
    assert pod["spec"]["securityContext"]["runAsUser"] == AGENT_USER
    assert "runAsUser" not in agent["securityContext"]
    assert sandbox["securityContext"]["runAsUser"] == sandbox["securityContext"]["runAsGroup"] == SANDBOX_USER
    assert AGENT_USER != SANDBOX_USER
    assert pod["spec"]["securityContext"]["fsGroup"] == GROUP_ID
    assert not pod["spec"].get("shareProcessNamespace")


def test_the_sandbox_is_a_native_sidecar_that_seals_itself() -> None:
    _, sandbox = parts(agent_pod(tools=SHELL))
    assert sandbox["restartPolicy"] == "Always"
    assert sandbox["command"][sandbox["command"].index("--seal") + 1] == "required"
    assert sandbox["command"][sandbox["command"].index("--connect") + 1] == f"{SOCKETS}/agent"


def test_an_agent_without_tools_that_touch_files_has_no_sandbox() -> None:
    pod = agent_pod()
    assert "initContainers" not in pod["spec"]
    (agent,) = pod["spec"]["containers"]
    assert env_of(agent)["PILOTHOUSE_SANDBOX"] == ""
    assert set(volumes_of(pod)) == {"tmp", "store"}


def test_only_tools_that_work_in_a_sandbox_bring_one() -> None:
    program = {"mcp": {"name": "files", "command": ["server"]}}
    for tool, sandboxed in (({"builtin": "web_fetch"}, False), (tracker(), False), (program, True)):
        assert ("initContainers" in agent_pod(tools=[tool])["spec"]) is sandboxed


def tracker(*keys: str) -> dict[str, Any]:
    headers = [{"name": f"X-{key}", "valueFrom": {"secretKeyRef": {"name": "tracker", "key": key}}} for key in keys]
    return {"mcp": {"name": "tracker", "url": "https://mcp.example.com/", "headers": headers}}


def test_keys_for_headers_are_files_of_the_agent_alone() -> None:
    pod = agent_pod(tools=[*SHELL, tracker("a", "b")])
    agent, sandbox = parts(pod)
    assert volumes_of(pod)["secrets"]["projected"]["sources"] == [
        {"secret": {"name": "tracker", "items": [{"key": key, "path": f"tracker/{key}"}]}} for key in "ab"
    ]
    assert mounts_of(agent)[SECRETS] == ("secrets", True)
    assert "secrets" not in {name for name, _ in mounts_of(sandbox).values()}


def test_agents_that_can_be_asked_work_in_the_same_pod_with_keys_of_their_own() -> None:
    other = {"secretKeyRef": {"name": "keys", "key": "other"}}
    asked = [{"model": MODELLED | {"apiKeyFrom": other}, "tools": SHELL}, {"model": MODELLED, "tools": [tracker("a")]}]
    pod = agent_pod(model=MODELLED, asked=asked)
    agent, sandbox = parts(pod)
    assert env_of(agent)["PILOTHOUSE_SANDBOX"] == "1"
    assert volumes_of(pod)["model"]["secret"] == {"secretName": "keys", "items": [{"key": "openai", "path": "key"}]}
    assert volumes_of(pod)["secrets"]["projected"]["sources"] == [
        {"secret": {"name": "keys", "items": [{"key": "other", "path": "keys/other"}]}},
        {"secret": {"name": "tracker", "items": [{"key": "a", "path": "tracker/a"}]}},
    ]
    assert mounts_of(agent)[SECRETS] == ("secrets", True)
    assert "secrets" not in {name for name, _ in mounts_of(sandbox).values()}


def test_the_users_belongings_are_the_sandboxs_and_never_beside_the_models_key() -> None:
    block = {
        "env": [{"name": "LD_PRELOAD", "value": "/data/x.so"}, {"name": "TOKEN", "valueFrom": KEY}],
        "volumes": [{"name": "data", "mountPath": "/data", "persistentVolumeClaim": {"name": "d"}}],
        "resources": {"limits": {"memory": "2Gi"}},
    }
    agent, sandbox = parts(agent_pod(model=MODELLED, tools=SHELL, pod=block))
    assert not {"LD_PRELOAD", "TOKEN"} & env_of(agent).keys()
    assert "/data" not in mounts_of(agent)
    assert env_of(sandbox)["TOKEN"] == KEY
    assert mounts_of(sandbox)["/data"] == ("user-0", False)
    assert agent["resources"]["limits"]["memory"] == "2Gi"


def test_the_agent_is_told_where_its_work_is() -> None:
    pod = agent_pod(tools=SHELL)
    agent, _ = parts(pod)
    assert env_of(agent) == {
        "PILOTHOUSE_WORK": "sha256:" + "0" * 64,
        "PILOTHOUSE_STORE_URL": "https://gateway.pilothouse.svc",
        "PILOTHOUSE_STORE_CA_PEM": "PEM",
        "PILOTHOUSE_STEP": "ask",
        "PILOTHOUSE_STEP_INDEX": "2",
        "PILOTHOUSE_ATTEMPT_NUMBER": "1",
        "PILOTHOUSE_SANDBOX": "1",
    }
    assert pod["metadata"]["labels"][ROLE] == "agent"


def test_both_run_our_image_whatever_the_user_says() -> None:
    for container in parts(agent_pod(tools=SHELL)):
        assert container["image"] == "pilothouse:test"
        assert container["command"][:3] == [PYTHON, "-I", "-m"]


def test_the_kubelet_ends_an_agent_that_nobody_else_does() -> None:
    assert agent_pod(90.0)["spec"]["activeDeadlineSeconds"] > 690
    assert "activeDeadlineSeconds" not in agent_pod()["spec"]


def test_the_workspace_is_as_large_as_the_agent_says() -> None:
    pod = agent_pod(tools=SHELL, sandbox={"workspace": {"size": "5Gi"}})
    assert volumes_of(pod)["workspace"]["emptyDir"] == {"sizeLimit": "5Gi"}
