"""The compiled modules of loadgen, and proxies between it and a server."""

import importlib
from collections.abc import Mapping
from pathlib import Path

from loadgen.cli.doctor.limit import Limit, State, unknown
from loadgen.util import machine

COMPILED = (
    "loadgen.util.method",
    "loadgen.util.timerfd",
    "loadgen.core.event_flags",
    "loadgen.core.histogram",
    "loadgen.core.answer",
    "loadgen.core.record",
    "loadgen.core.record_json",
    "loadgen.core.record_row",
    "loadgen.core.dialect_scan",
    "loadgen.core.server_times_scan",
    "loadgen.core.sse",
    "loadgen.core.http1",
    "loadgen.core.kernel_clock",
    "loadgen.core.read_loop",
    "loadgen.core.arrivals",
    "loadgen.core.loop_probe",
    "loadgen.core.stamped_connection",
    "loadgen.core.server_threads",
    "loadgen.core.keep_alive",
    "loadgen.core.pool",
    "loadgen.core.schedule",
    "loadgen.core.pacer",
    "loadgen.core.request_encoder",
    "loadgen.core.connections",
    "loadgen.core.sender",
    "loadgen.core.accumulator",
    "loadgen.core.request_rows",
    "loadgen.core.record_counter",
    "loadgen.core.request_table",
    "loadgen.core.number_sample",
    "loadgen.engines.sim.outlet",
    "loadgen.engines.sim.emit",
    "loadgen.engines.sim.planned",
    "loadgen.workload.files.json_index",
)
MODULES = "compiled modules"
PROXIES = ("http_proxy", "https_proxy", "all_proxy")
# The ports on which the proxies of service meshes intercept connections.
MESHES = {15001: ("Istio", "sidecar.istio.io/inject"), 4140: ("Linkerd", "linkerd.io/inject")}
_LISTENING = "0A"


def limits(root: Path, environment: Mapping[str, str]) -> list[Limit]:
    """Return the limits of the software, read below `root` and from environment variables."""
    return [compiled(), proxies(environment), mesh(root)]


def compiled(modules: tuple[str, ...] = COMPILED) -> Limit:
    """Return whether the compiled modules exist, and are no debug build."""
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
        return Limit(
            name,
            State.WARN,
            f"missing: {', '.join(missing)}",
            "loadgen cannot run without them",
            remedy,
        )
    if counting:
        return Limit(
            name, State.WARN, "a debug build", "several times as slow as a release build", remedy
        )
    return Limit(name, State.OK, "complete", "reading and pacing take microseconds", remedy)


def proxies(environment: Mapping[str, str]) -> Limit:
    """Return the proxies in environment variables."""
    names = sorted(name for name in environment if name.lower() in PROXIES and environment[name])
    if not names:
        return Limit(
            "proxies", State.OK, "none in the environment", "requests go directly to the server", ""
        )
    bounds = (
        "loadgen ignores them without --proxy env; other tools may use them, and then measure the "
        "proxy, too"
    )
    return Limit("proxies", State.OK, f"{', '.join(names)} set", bounds, f"unset {' '.join(names)}")


def mesh(root: Path) -> Limit:
    """Return whether a service mesh intercepts connections."""
    name, tables = (
        "service mesh",
        [machine.read_system_file(root / f"proc/net/{table}") for table in ("tcp", "tcp6")],
    )
    if not any(tables):
        return unknown(name, "the proxy of a mesh would add to every latency")
    rows = [row.split() for table in tables for row in table.splitlines()[1:]]
    open_ports = {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTENING}
    meshes = [(port, *MESHES[port]) for port in MESHES if port in open_ports]
    if not meshes:
        return Limit(name, State.OK, "none", "nothing intercepts connections", "")
    port, mesh_name, annotation = meshes[0]
    value = f"a process listens on the port of {mesh_name}'s proxy ({port})"
    bounds = "the proxy would intercept every connection, and add to every latency"
    return Limit(
        name, State.WARN, value, bounds, f"measure from a pod without the sidecar ({annotation})"
    )
