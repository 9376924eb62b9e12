"""The volumes of a native cluster: folders of this machine, made beforehand, as nothing makes them on demand."""

import json
import shutil
from pathlib import Path
from typing import Any

from e2e.cluster.kubectl import Kubectl, manifest

_COUNT = 10


def ensure(kubectl: Kubectl, folder: Path) -> None:
    """Makes the StorageClass `local` and its volumes; those whose claim is gone are emptied and made anew."""
    for volume in json.loads(kubectl("get", "persistentvolumes", "--output=json"))["items"]:
        if volume["status"].get("phase") in ("Released", "Failed"):
            _remove(kubectl, volume)
    each = (manifest("volume", number=str(number), folder=folder / str(number)) for number in range(1, _COUNT + 1))
    kubectl("apply", "--filename=-", stdin="\n---\n".join((manifest("storage"), *each)))


def _remove(kubectl: Kubectl, volume: dict[str, Any]) -> None:
    kubectl("delete", "persistentvolume", volume["metadata"]["name"])
    shutil.rmtree(volume["spec"]["hostPath"]["path"], ignore_errors=True)
