"""Software: what loadgen is built of, and what stands between it and a server."""

import importlib
from collections.abc import Mapping
from pathlib import Path

from loadgen.cli.doctor.limit import Limit, State, unknown
from loadgen.util import machine

COMPILED = (
    "loadgen.core.event_flags",
    "loadgen.core.histogram",
    "loadgen.core.record",
    "loadgen.core.record_json",
    "loadgen.core.sse",
    "loadgen.core.http1",
    "loadgen.core.read_loop",
    "loadgen.core.connection",
    "loadgen.core.accumulator",
    "loadgen.engines.sim.outlet",
    "loadgen.engines.sim.emit",
    "loadgen.engines.sim.planned",
    "loadgen.workload.files.json_index",
)
MODULES = "compiled modules"
PROXIES = ("http_proxy", "https_proxy", "all_proxy")
# Where the proxies of service meshes listen for what they take from the processes beside them.
MESHES = {15001: ("Istio", "sidecar.istio.io/inject"), 4140: ("Linkerd", "linkerd.io/inject")}
_LISTENING = "0A"


def limits(root: Path, environment: Mapping[str, str]) -> list[Limit]:
    """All of them, read below `root` and from the environment's variables."""
    return [compiled(), proxies(environment), mesh(root)]


def compiled(modules: tuple[str, ...] = COMPILED) -> Limit:
    """The compiled modules: that they are there, and built to be fast."""
    name, remedy = MODULES, "in a clone, pip install --force-reinstall --no-deps ."
    missing, counting = [], []
    for module in modules:
        try:
            live = getattr(importlib.import_module(module), "live", None)
        except ImportError:
            missing.append(module)
        else:
            counting += [module] if live is not None and live() is not None else []
    if missing:
        return Limit(name, State.LOW, f"missing: {', '.join(missing)}", "without them nothing runs", remedy)
    if counting:
        return Limit(name, State.LOW, "a debug build", "several times as slow as what users run", remedy)
    return Limit(name, State.OK, "all there", "reading and pacing cost microseconds", remedy)


def proxies(environment: Mapping[str, str]) -> Limit:
    """Proxies that the environment names."""
    found = sorted(name for name in environment if name.lower() in PROXIES and environment[name])
    if not found:
        return Limit("proxies", State.OK, "none in the environment", "requests go straight to the server", "")
    bounds = "loadgen goes around them, straight to the server; other tools may not, and so measure them too"
    return Limit("proxies", State.OK, f"{', '.join(found)} set", bounds, f"unset {' '.join(found)}")


def mesh(root: Path) -> Limit:
    """A transparent proxy that takes every connection."""
    name, tables = "service mesh", [machine.read_system_file(root / f"proc/net/{table}") for table in ("tcp", "tcp6")]
    if not any(tables):
        return unknown(name, "a proxy of one would be part of every latency")
    rows = [row.split() for table in tables for row in table.splitlines()[1:]]
    open_ports = {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTENING}
    found = [(port, *MESHES[port]) for port in MESHES if port in open_ports]
    if not found:
        return Limit(name, State.OK, "none", "nothing takes connections on their way", "")
    port, mesh_name, annotation = found[0]
    value = f"somebody listens where {mesh_name}'s proxy does (port {port})"
    bounds = "it would take every connection, and be part of every latency"
    return Limit(name, State.LOW, value, bounds, f"measure from a pod without it: {annotation}")
