"""The simulator's command line: its flags, and the settings that they give."""

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.engines.sim.faults import Faults
from loadgen.engines.sim.flags import add, given
from loadgen.engines.sim.settings import SimSettings
from loadgen.util.argument_parser import OneLineParser

PROG = "python -m loadgen.engines.sim"


def parser(*, add_help: bool = True) -> OneLineParser:
    """Return the parser of the simulator's command line.

    Args:
        add_help: Whether it has --help, which prints the flags and ends the program.
    """
    about = "Serve a simulated engine with the model name MODEL."
    result = OneLineParser(PROG, description=about, add_help=add_help)
    result.add_argument("model", nargs="?", metavar="MODEL", help="any name; the model name in requests (sim)")
    add(result, SimSettings, "settings; flags that vLLM has too have its names")
    add(result, Faults, "faults, to test programs that start servers")
    return result


def read(
    words: Sequence[str] | None, defaults: Mapping[str, Any] | None = None, *, add_help: bool = True
) -> tuple[SimSettings, Faults]:
    """Return what a command line asks for.

    Args:
        words: The words after the program; None: those of this process.
        defaults: Settings that the words override.
        add_help: As in `parser`.

    Raises:
        BadInput: A flag is unknown, or a value is invalid or has no effect.
        StartFailed: The model of its profile does not fit into the GPUs.
    """
    flags = parser(add_help=add_help).parse_args(words)
    named = {"served_model_name": flags.model} if flags.model is not None else {}
    settings = SimSettings.of(**(named | dict(defaults or {}) | given(flags, SimSettings)))
    return settings, Faults(**given(flags, Faults))
