"""A process that finds what a run of random words needs to know of a tokenizer, when it is used for
the first time.

Parsing a tokenizer takes half a second. It needs no NumPy, so this process begins before the
command has imported that. The preparer waits for it, since `files.cache` lets one process at a time
make the facts of a tokenizer. `run()` reads one line, the path of a tokenizer.json.
"""

import os
import sys
from pathlib import Path

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util import child_process
from loadgen.workload.chat_template.template import ChatTemplate
from loadgen.workload.files import cache
from loadgen.workload.tokenizer import exact_text, tokenizer

MODULE = __name__
# Data sets that need no more of a tokenizer than these facts.
OF_RANDOM_WORDS = ("random", "prefix_repetition")

# Kept to the end of the process: to free it takes 0.1 s.
_tokenizer: tokenizer.Tokenizer | None = None


def unknown_file(settings: RunSettings) -> Path | None:
    """Return the tokenizer.json of a run of random words if its words are not in the cache.

    A tokenizer that is named as on the hub is not looked up.

    Args:
        settings: The settings of the run.

    Returns:
        The path of the file; None in all other cases.
    """
    if settings.dataset_name not in OF_RANDOM_WORDS or settings.tokenizer is None:
        return None
    path = Path(os.path.expanduser(settings.tokenizer))
    if path.is_dir():
        path /= tokenizer.FILE
    try:
        is_cached = path.name != tokenizer.FILE or exact_text.are_known(cache.file_sha256(path))
    except OSError:
        return None
    return None if is_cached else path


def run() -> None:
    """Find the words of the tokenizer on standard input, and the tokens of its chat template; the
    cache keeps both. An error is left to the preparer, which meets it again.
    """
    global _tokenizer
    child_process.name_process("facts")
    path = Path(os.fsdecode(sys.stdin.buffer.readline().rstrip(b"\n")))
    try:
        with cache.making_facts(cache.file_sha256(path)):
            _tokenizer = tokenizer.load(str(path))
            words = exact_text.words_of(_tokenizer).items
            template = ChatTemplate.of(_tokenizer)
            if template is not None:
                template.added_tokens(words[: exact_text.MIN_WORDS])
                for piece in template.frame(("user",)) or ():
                    template.piece_ends(piece)
    except (OSError, BadInput):
        return
