"""Mutant: one lie that a load generator could tell, and what has to notice it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of the source: `old`, which stands in `file` exactly once, becomes `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Test:
    """A test by its pytest node id."""

    node: str

    def __str__(self) -> str:
        return f"test `{self.node}`"


@dataclass(frozen=True, slots=True)
class Check:
    """A check that a run prints, by its name, and the flags of a run for which it has to turn
    red.
    """

    name: str
    flags: str

    def __str__(self) -> str:
        return f'check "{self.name}" of `loadgen run {self.flags}`'


@dataclass(frozen=True, slots=True)
class Mutant:
    """A lie, told by editing a copy of the source.

    Attributes:
        name: The lie.
        edits: How it is told.
        caught_by: What must turn red; without the edits it must be green.
    """

    name: str
    edits: tuple[Edit, ...]
    caught_by: Test | Check
