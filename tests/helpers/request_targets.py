"""Targets of a model m, and what they send."""

import orjson

from loadgen.config.settings import RunSettings
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target

PROMPT = Prompt("Why?", 3, 64, "test/0")


def target(**options):
    return Target.from_settings(RunSettings(**options), "m")


def body(**options):
    return orjson.loads(target(**options).body(PROMPT))


def head(**options):
    """The request line and the headers, in the order in which they are sent."""
    line, *rest = target(**options).head().decode("latin-1").split("\r\n")
    return line, [tuple(header.split(": ", 1)) for header in rest]
