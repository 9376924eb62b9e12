"""The network namespace that holds a native cluster, joined to this machine by one veth pair.

It has no default route: what runs in the cluster reaches the cluster and this machine, and nothing beyond.
Processes enter it with `nsenter`: `ip netns exec` would mount a fresh /sys, and hide the cgroup hierarchies.
"""

from pathlib import Path

from e2e.cluster.commands import run, succeeds
from e2e.cluster.layout import Layout

# There once the kernel's module br_netfilter is.
_BRIDGE_SETTINGS = Path("/proc/sys/net/bridge")


def entering(layout: Layout) -> tuple[str, ...]:
    """The words before a command that is to run inside the namespace."""
    return ("nsenter", f"--net={layout.namespace}", "--")


def exists(layout: Layout) -> bool:
    """Tells whether the namespace is whole: the route is the last thing that `make` adds."""
    routes = (*entering(layout), "ip", "route", "show", layout.services)
    return layout.namespace.exists() and succeeds(*routes) and run(*routes) != ""


def make(layout: Layout) -> None:
    """Makes the namespace, its link and its routes."""
    outside, inside = _ends(layout)
    run("ip", "netns", "add", layout.name)
    run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", layout.name)
    run("ip", "address", "add", f"{layout.gateway}/30", "dev", outside)
    run("ip", "link", "set", outside, "up")
    run(*entering(layout), "ip", "address", "add", f"{layout.address}/30", "dev", inside)
    run(*entering(layout), "ip", "link", "set", inside, "up")
    run(*entering(layout), "ip", "link", "set", "lo", "up")
    if not _BRIDGE_SETTINGS.exists():
        run("modprobe", "br_netfilter")
    # Packets between Pods on the bridge pass iptables, where the rules of Services and NetworkPolicies are.
    run(*entering(layout), "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.bridge.bridge-nf-call-iptables=1")
    # Without a route the API server's connection to a Service fails before kube-proxy's rules can redirect it: no
    # webhook is reached, and one that says `failurePolicy: Ignore` is silently passed by.
    run(*entering(layout), "ip", "route", "add", layout.services, "dev", inside)


def remove(layout: Layout) -> None:
    """Removes the namespace and its link, or what an interrupted `make` left of them."""
    outside, _ = _ends(layout)
    if succeeds("ip", "link", "show", outside):
        run("ip", "link", "delete", outside)
    if layout.namespace.exists():
        run("ip", "netns", "delete", layout.name)


def _ends(layout: Layout) -> tuple[str, str]:
    return f"{layout.name}0", f"{layout.name}1"
