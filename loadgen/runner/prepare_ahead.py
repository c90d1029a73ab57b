"""Lead: further prompts of a closed loop that time alone bounds, made while it goes on, some way ahead of it."""

from collections.abc import Callable, Iterator
from pathlib import Path

from loadgen.workload.prompt import Prompt
from loadgen.workload.prompt_digest import prompt_mark
from loadgen.workload.request_store import RequestFiles, next_block

ROWS = 4096  # that lie ahead of the one that was sent last, at least,
BYTES = 1 << 26  # unless they are longer than this together


class Lead:
    """Appends prompts to the requests of a run.

    Args:
        folder: Where these lie.
        body: Turns a prompt into the bytes of a request's body.
        prompts: What follows those of the run.
        prepared: How many lie there.
        seen: The marks of those, and of all that is sent off the record.
    """

    def __init__(
        self,
        folder: Path,
        body: Callable[[Prompt], bytes],
        prompts: Iterator[Prompt],
        prepared: int,
        seen: set[int],
    ) -> None:
        self._folder, self._body, self._prompts = folder, body, prompts
        self._made, self._seen = prepared, seen
        self._rows = min(ROWS, BYTES * prepared // (folder / "bodies").stat().st_size)

    def reach(self, row: int) -> int:
        """Make prompts until enough lie ahead of this row of the run; returns how many rows there are then.

        Raises:
            BadInput: The data set cannot be read.
            OSError: There is no room.
        """
        with RequestFiles(self._folder, self._body, further=True) as files:
            while self._made - row < self._rows and (block := next_block(self._prompts)):
                files.add(block, [self._is_known(prompt) for prompt in block])
                self._made += len(block)
        return self._made

    def _is_known(self, prompt: Prompt) -> bool:
        asked = prompt_mark(prompt)
        known = asked in self._seen
        self._seen.add(asked)
        return known
