"""Pod Security *restricted* (and with it *baseline*), as a check of a Pod's manifest.

After https://kubernetes.io/docs/concepts/security/pod-security-standards/; everything that is not plainly allowed is
a violation.
"""

from collections.abc import Iterator, Mapping
from typing import Any

VOLUMES = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
HOST = ("hostNetwork", "hostPID", "hostIPC")
PROFILES = ("RuntimeDefault", "Localhost")


def violations(pod: Mapping[str, Any]) -> list[str]:
    """What keeps the Pod out of a restricted namespace; empty where nothing does."""
    spec = pod["spec"]
    context = spec.get("securityContext", {})
    found = [f"{field} is set" for field in HOST if spec.get(field)]
    found += [f"volume {volume['name']} is of a kind that is not allowed" for volume in _foreign(spec)]
    found += ["sysctls are set"] if context.get("sysctls") else []
    found += _of_user(context, "the Pod")
    for container in containers(spec):
        found += _of_container(container, context)
    return found


def containers(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All of a Pod, whatever list they stand in."""
    lists = ("containers", "initContainers", "ephemeralContainers")
    return [container for name in lists for container in spec.get(name, [])]


def _foreign(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for volume in spec.get("volumes", []):
        if set(volume) - {"name"} - VOLUMES or len(volume) != 2:
            yield volume


def _of_container(container: Mapping[str, Any], pod: Mapping[str, Any]) -> Iterator[str]:
    name, own = container["name"], container.get("securityContext", {})
    capabilities = own.get("capabilities", {})
    if own.get("privileged"):
        yield f"{name} is privileged"
    if own.get("allowPrivilegeEscalation") is not False:
        yield f"{name} may gain privileges"
    if capabilities.get("drop") != ["ALL"]:
        yield f"{name} keeps capabilities"
    if set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield f"{name} adds capabilities"
    if own.get("procMount", "Default") != "Default":
        yield f"{name} has another /proc"
    if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        yield f"{name} may run as root"
    if own.get("seccompProfile", pod.get("seccompProfile", {})).get("type") not in PROFILES:
        yield f"{name} has no seccomp profile"
    if any(port.get("hostPort") for port in container.get("ports", [])):
        yield f"{name} takes a port of the host"
    yield from _of_user(own, name)


def _of_user(context: Mapping[str, Any], whose: str) -> Iterator[str]:
    if context.get("runAsUser") == 0:
        yield f"{whose} runs as root"
    for field in ("seLinuxOptions", "windowsOptions", "appArmorProfile"):
        if field in context:
            yield f"{whose} sets {field}"
