"""The volumes of a native cluster: folders of this machine, made beforehand, as nothing makes them on demand."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from e2e.cluster.clients import Kubectl, Manifest

CLASS = "local"

_COUNT = 10


def ensure(kubectl: Kubectl, folder: Path) -> None:
    """Makes the StorageClass and its volumes; those whose claim is gone are emptied and made anew."""
    for volume in kubectl.items("persistentvolumes"):
        if volume["status"].get("phase") in ("Released", "Failed"):
            _remove(kubectl, volume)
    kubectl.apply(_STORAGE_CLASS, *_volumes(folder))


def _remove(kubectl: Kubectl, volume: dict[str, Any]) -> None:
    kubectl("delete", "persistentvolume", volume["metadata"]["name"])
    shutil.rmtree(volume["spec"]["hostPath"]["path"], ignore_errors=True)


_STORAGE_CLASS: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def _volumes(folder: Path) -> Iterator[Manifest]:
    for number in range(1, _COUNT + 1):
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{CLASS}-{number}"},
            "spec": {
                "capacity": {"storage": "2Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": CLASS,
                "hostPath": {"path": str(folder / str(number)), "type": "DirectoryOrCreate"},
            },
        }
