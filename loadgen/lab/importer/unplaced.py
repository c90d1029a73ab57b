"""The error of a published result that belongs to nothing in a study."""

from loadgen.errors import LoadgenError


class Unplaced(LoadgenError):
    """A result or command that no arm or workload of the study matches."""
