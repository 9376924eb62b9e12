"""The volumes of a native cluster: folders of this machine, made beforehand, as nothing makes them on demand."""

import shutil
from pathlib import Path
from typing import Any

from e2e.cluster.clients import Kubectl, Manifest
from e2e.cluster.layout import Layout

CLASS = "local"

_COUNT = 10
_STORAGE_CLASS: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def ensure(kubectl: Kubectl, layout: Layout) -> None:
    """Makes the StorageClass, and the volumes that are missing; those whose claim is gone are emptied and made anew."""
    kubectl.apply(_STORAGE_CLASS)
    folders = layout.run / "volumes"
    kept = {name for volume in kubectl.items("persistentvolumes") if (name := _kept(kubectl, volume))}
    missing = {f"{CLASS}-{number}" for number in range(1, _COUNT + 1)} - kept
    for name in missing:
        shutil.rmtree(folders / name, ignore_errors=True)
        (folders / name).mkdir(parents=True)
    if missing:
        kubectl.apply(*(_volume(name, folders / name, layout.name) for name in sorted(missing)))


def _kept(kubectl: Kubectl, volume: dict[str, Any]) -> str | None:
    """The name of a volume that is of use still; one whose claim is gone is deleted."""
    name: str = volume["metadata"]["name"]
    if volume["status"].get("phase") not in ("Released", "Failed"):
        return name
    kubectl("delete", "persistentvolume", name)
    return None


def _volume(name: str, folder: Path, node: str) -> Manifest:
    """A volume of the kind `local`: unlike a hostPath it is given to the group that a Pod's fsGroup names."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": CLASS,
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }
