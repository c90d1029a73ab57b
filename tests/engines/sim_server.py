"""A simulated server for tests and benchmarks, with knobs as keywords."""

from loadgen.engines import Launcher, Server
from loadgen.engines.sim import engine


def simulated(model: str = "sim", **knobs: object) -> Server:
    """Start one and return when it answers."""
    return Launcher().start(engine, model, knobs, timeout_s=60.0)
