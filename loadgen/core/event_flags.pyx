# cython: language_level=3
"""The flags of a streamed event (defined in event_flags.pxd), and their names in files."""
import functools

import orjson

NAMES = {
    "content": CONTENT,
    "reasoning": REASONING,
    "other": OTHER,
    "result": RESULT,
    "silent": SILENT,
    "choice": CHOICE,
    "role": ROLE,
    "empty": EMPTY,
    "finish": FINISH,
    "usage": USAGE,
    "reasoning_content": OLD_REASONING,
    "tool": TOOL,
    "done": DONE,
    "so_far": CUMULATIVE,
    "bare": BARE,
}


@functools.cache
def names_json(flags):
    """Return the names of a set of flags, joined by +, as a JSON string in bytes."""
    return orjson.dumps("+".join([name for name, flag in NAMES.items() if flags & flag]))
