"""What one streamed event says, as a set of flags, and their names in files."""

CONTENT: int
REASONING: int
OTHER: int
RESULT: int
TEXTS: int
SILENT: int
TOKENS: int
CHOICE: int
ROLE: int
EMPTY: int
FINISH: int
USAGE: int
OLD_REASONING: int
TOOL: int
DONE: int
CUMULATIVE: int
BARE: int
NAMES: dict[str, int]

def names_json(flags: int) -> bytes:
    """Return the names of a set of flags, joined by +, as a JSON string in bytes."""
