"""Faults: all that the faulty server can play, by name."""

from loadgen.testing.faults import connections, events, responses  # noqa: F401 - fill the table
from loadgen.testing.faults.fault import FAULTS, Fault, Step, Steps, Together, Until, chosen

__all__ = ["FAULTS", "Fault", "Step", "Steps", "Together", "Until", "chosen"]
