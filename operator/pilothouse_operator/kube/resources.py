"""The kinds of objects that are read and written, and where the API serves them."""

from dataclasses import dataclass

from pilothouse.api.base import GROUP


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API serves it. `plural` is its name in paths."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """The path of an object, or of the list where no name is given."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        place = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return "/".join(part for part in (f"{root}{place}/{self.plural}", name, subresource) if part)


AGENTS = Resource(GROUP, "v1alpha1", "agents", "Agent")
WORKFLOWS = Resource(GROUP, "v1alpha1", "workflows", "Workflow")
PACKS = Resource(GROUP, "v1alpha1", "packs", "Pack")
TOOL_APPROVALS = Resource(GROUP, "v1alpha1", "toolapprovals", "ToolApproval")
OURS = (AGENTS, WORKFLOWS, PACKS, TOOL_APPROVALS)
BY_KIND = {resource.kind: resource for resource in OURS}

PODS = Resource("", "v1", "pods", "Pod")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
EVENTS = Resource("", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
