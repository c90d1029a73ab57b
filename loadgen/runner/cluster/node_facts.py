"""What a machine of a cluster says of itself; it may lack loadgen, so this function is sent there by value."""

from typing import Any


def facts() -> dict[str, Any]:
    """Its version of loadgen (None: it has none), and the cores that its processes may use."""
    import importlib.metadata
    import os

    try:
        version = importlib.metadata.version("loadgen")
    except importlib.metadata.PackageNotFoundError:
        version = None
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"loadgen": version, "cores": usable}
