"""Who may talk to whom, asked of the policies as a network plugin reads them."""

from ipaddress import ip_address, ip_network

import pytest

from e2e.chart.rendering import Object, Render

OWN = "pilothouse"
USERS = "team-a"
COMPONENTS = ("operator", "gateway", "migrate", "check", "postgres")
SERVED = (f"namespaces.served={{{USERS}}}",)
METADATA = "169.254.169.254"


def ours(component: str) -> "Pod":
    return OWN, {"app.kubernetes.io/component": component, **_RELEASE}


_RELEASE = {"app.kubernetes.io/name": "pilothouse", "app.kubernetes.io/instance": "pilothouse"}
AGENT = USERS, {"app.kubernetes.io/managed-by": "pilothouse", "pilothouse.dev/role": "agent"}
COMMAND = USERS, {"app.kubernetes.io/managed-by": "pilothouse", "pilothouse.dev/role": "command"}
IMAGE = USERS, {"app.kubernetes.io/managed-by": "pilothouse", "pilothouse.dev/role": "image"}
STRANGER = "elsewhere", {"app": "stranger"}

Pod = tuple[str, dict[str, str]]
"""A Pod, by its namespace and labels."""

Peer = Pod | str
"""A Pod, or an address outside the cluster."""


class Policies:
    """The policies of a render. What selects no Pod does not bind it, as the API says."""

    def __init__(self, *values: str) -> None:
        self._policies = Render.of(*values).kind("NetworkPolicy")

    def allow(self, source: Peer, target: Peer, port: int, protocol: str = "TCP") -> bool:
        """Whether both ends let it pass."""
        out = isinstance(source, str) or self._passes(source, "egress", "to", target, port, protocol)
        into = isinstance(target, str) or self._passes(target, "ingress", "from", source, port, protocol)
        return out and into

    def _passes(self, pod: Pod, way: str, peers: str, other: Peer, port: int, protocol: str) -> bool:
        binding = [
            each for each in self._policies if _selects(each, pod) and way.title() in each["spec"]["policyTypes"]
        ]
        rules = [rule for each in binding for rule in each["spec"].get(way, [])]
        return not binding or any(_rule_holds(rule, peers, other, port, protocol) for rule in rules)


def _selects(policy: Object, pod: Pod) -> bool:
    namespace, labels = pod
    selector = policy["spec"]["podSelector"]
    wanted: dict[str, str] = selector["matchLabels"]
    among = {each["key"]: each["values"] for each in selector.get("matchExpressions", []) if each["operator"] == "In"}
    assert len(among) == len(selector.get("matchExpressions", []))
    fits = wanted.items() <= labels.items() and all(labels.get(key) in values for key, values in among.items())
    return policy["metadata"]["namespace"] == namespace and fits


def _rule_holds(rule: Object, peers: str, other: Peer, port: int, protocol: str) -> bool:
    ports = rule.get("ports")
    if ports is not None and not any(
        each["port"] == port and each.get("protocol", "TCP") == protocol for each in ports
    ):
        return False
    return peers not in rule or any(_is_peer(each, other) for each in rule[peers])


def _is_peer(peer: Object, other: Peer) -> bool:
    if isinstance(other, str):
        block = peer.get("ipBlock")
        return (
            block is not None
            and _within(other, block["cidr"])
            and not any(_within(other, each) for each in block.get("except", []))
        )
    namespace, labels = other
    if "ipBlock" in peer:
        return False  # plugins differ on whether a block can mean a Pod: what must pass must not rest on it
    if "namespaceSelector" in peer:
        wanted = peer["namespaceSelector"].get("matchLabels", {})
        if not wanted.items() <= {"kubernetes.io/metadata.name": namespace}.items():
            return False
    elif namespace != OWN:
        return False
    selected: dict[str, str] = peer.get("podSelector", {}).get("matchLabels", {})
    return selected.items() <= labels.items()


def _within(address: str, block: str) -> bool:
    found, network = ip_address(address), ip_network(block)
    return found.version == network.version and found in network


def test_the_database_is_reached_by_those_who_use_it_alone() -> None:
    policies = Policies(*SERVED)
    for component in ("operator", "gateway", "migrate"):
        assert policies.allow(ours(component), ours("postgres"), 5432)
    for peer in (ours("check"), AGENT, COMMAND, STRANGER, "10.0.0.7"):
        assert not policies.allow(peer, ours("postgres"), 5432)


def test_the_database_speaks_to_nobody() -> None:
    policies = Policies()
    for target in (STRANGER, ours("operator"), ours("gateway"), "93.184.216.34", METADATA):
        for port in (53, 443, 5432, 8080):
            assert not policies.allow(ours("postgres"), target, port)


@pytest.mark.parametrize("component", COMPONENTS)
def test_none_of_ours_reaches_or_is_reached_by_a_stranger_on_other_ports(component: str) -> None:
    policies = Policies()
    for port in (22, 80, 2379, 10250):
        assert not policies.allow(STRANGER, ours(component), port)
        assert not policies.allow(ours(component), STRANGER, port)
        assert not policies.allow(ours(component), METADATA, port)


def test_the_gateway_is_open_to_agents_people_and_the_check() -> None:
    policies = Policies(*SERVED)
    for peer in (AGENT, ours("check"), "10.0.0.7"):
        assert policies.allow(peer, ours("gateway"), 8443)
    assert policies.allow(ours("check"), ours("operator"), 8080)


def test_the_api_server_can_be_named_and_is_then_the_only_one() -> None:
    named = Policies("networkPolicy.apiServer={10.1.2.3/32}")
    for component in ("operator", "gateway", "migrate", "check"):
        assert Policies().allow(ours(component), "10.1.2.3", 6443)
        assert named.allow(ours(component), "10.1.2.3", 6443)
        assert not named.allow(ours(component), "10.1.2.4", 6443)


def test_ones_own_database_can_be_named_and_is_then_the_only_one() -> None:
    values = ("postgres.bundled.enabled=false", "postgres.dsnSecret.name=db", "networkPolicy.database.port=6432")
    anywhere = Policies(*values)
    named = Policies(*values, "networkPolicy.database.cidrs={10.9.0.0/16}")
    assert anywhere.allow(ours("operator"), "10.9.0.1", 6432)
    assert not anywhere.allow(ours("operator"), "10.9.0.1", 5432)
    assert named.allow(ours("operator"), "10.9.0.1", 6432)
    assert not named.allow(ours("operator"), "10.8.0.1", 6432)


def test_metrics_can_be_kept_to_their_collector() -> None:
    values = ("networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.kubernetes\\.io/metadata\\.name=monitoring",)
    collector = "monitoring", {"app": "prometheus"}
    for component in ("operator", "gateway"):
        assert Policies().allow(STRANGER, ours(component), 8080)
        assert Policies(*values).allow(collector, ours(component), 8080)
        assert not Policies(*values).allow(STRANGER, ours(component), 8080)


def test_nobody_reaches_the_pods_of_steps() -> None:
    policies = Policies(*SERVED)
    for pod in (AGENT, COMMAND, IMAGE):
        for source in (STRANGER, AGENT, COMMAND, ours("gateway"), "93.184.216.34"):
            assert not policies.allow(source, pod, 80)


def test_an_agent_reaches_names_the_gateway_and_public_https() -> None:
    policies = Policies(*SERVED)
    dns = "kube-system", {"k8s-app": "kube-dns"}
    for resolver in (dns, "169.254.20.10", "10.96.0.10"):
        assert policies.allow(AGENT, resolver, 53, "UDP")
    assert policies.allow(AGENT, ours("gateway"), 8443)
    for address in ("93.184.216.34", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"):
        assert policies.allow(AGENT, address, 443)
        assert not policies.allow(AGENT, address, 80)


def test_an_agent_reaches_no_metadata_no_private_address_and_no_other_pod() -> None:
    policies = Policies(*SERVED)
    for address in (METADATA, "10.96.0.1", "192.168.1.1", "172.20.0.1", "100.64.0.1", "fd00:ec2::254", "fe80::1"):
        for port in (53, 80, 443, 6443):
            if port != 53 or address in (METADATA, "fd00:ec2::254"):
                assert not policies.allow(AGENT, address, port), (address, port)
    for pod in (STRANGER, COMMAND, ours("operator"), ours("postgres")):
        for port in (443, 5432, 8080):
            assert not policies.allow(AGENT, pod, port)


def test_an_agent_reaches_a_private_model_only_by_a_rule_of_its_own() -> None:
    rule = "networkPolicy.agents.egress[0]"
    values = (
        *SERVED,
        f"{rule}.ports[0].port=8000",
        f"{rule}.to[0].namespaceSelector.matchLabels.kubernetes\\.io/metadata\\.name=models",
    )
    model = "models", {"app": "vllm"}
    assert not Policies(*SERVED).allow(AGENT, model, 8000)
    assert Policies(*values).allow(AGENT, model, 8000)
    assert Policies(*values).allow(AGENT, ours("gateway"), 8443)
    assert not Policies(*values).allow(AGENT, "93.184.216.34", 443), "the list was replaced"


def test_a_command_reaches_what_a_pod_reaches_but_no_metadata() -> None:
    policies = Policies(*SERVED)
    for target in ("93.184.216.34", "10.96.0.1", STRANGER, "2606:2800:21f:cb07:6820:80da:af6b:8b2c"):
        assert policies.allow(COMMAND, target, 80)
    for address in (METADATA, "169.254.170.2", "fd00:ec2::254", "fe80::1"):
        assert not policies.allow(COMMAND, address, 80)
    assert not policies.allow(COMMAND, ours("postgres"), 5432)


def test_policies_stand_in_served_namespaces_and_can_be_left_out() -> None:
    render = Render.of("namespaces.served={team-a,team-b}")
    placed = {each["metadata"]["namespace"] for each in render.kind("NetworkPolicy")}
    assert placed == {"pilothouse", "team-a", "team-b"}
    assert {each["metadata"]["namespace"] for each in Render.of().kind("NetworkPolicy")} == {"pilothouse"}
    assert not Render.of("networkPolicy.enabled=false").kind("NetworkPolicy")
