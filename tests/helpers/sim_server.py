"""A simulated server for tests and benchmarks, with its flags as keywords."""

from loadgen.engines import Launcher, Server
from loadgen.engines.kinds.simulator import engine


def words(**flags: object) -> list[str]:
    """The words that say the flags; of a switch, one or the other."""
    said: list[str] = []
    for name, value in flags.items():
        flag = name.replace("_", "-")
        said += (
            [f"--{flag}" if value else f"--no-{flag}"]
            if isinstance(value, bool)
            else [f"--{flag}", str(value)]
        )
    return said


def simulated(model: str = "sim", **flags: object) -> Server:
    """Start one and return when it answers."""
    return Launcher().start(engine, model, raw=words(**flags), timeout_s=60.0)
