"""`CachePlan`: the prompts that warm a prefix cache up, and what a cache can give back of those of a run."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from loadgen.config.load import CACHE, WARM, CacheProtocol
from loadgen.errors import BadInput
from loadgen.workload.prefix_cache.cache_block import CacheBlock
from loadgen.workload.prefix_cache.shared_prompts import SharedPrompts
from loadgen.workload.prefix_cache.token_ends import TokenEnds
from loadgen.workload.prompt import Prompt
from loadgen.workload.prompt_digest import prompt_mark
from loadgen.workload.request_store import WARM_CACHE_PREFIX, RequestFiles
from loadgen.workload.target import Target


class CachePlan:
    """Watches the prompts of a run on their way to its files; used in `with`.

    Args:
        protocol: The state in which the cache is to be.
        folder: The folder of the run's requests.
        target: The server, which decides the form of a request.
        ends: Tokenizes the prompts; None: there is no tokenizer.
        block: The unit of the cache.
        prefixes: A prompt of each distinct prefix alone.
    """

    def __init__(
        self,
        protocol: CacheProtocol,
        folder: Path,
        target: Target,
        ends: TokenEnds | None,
        block: CacheBlock,
        prefixes: Iterable[Prompt],
    ) -> None:
        self._warms, self._folder, self._body = protocol == WARM, folder, target.body
        self._shared = SharedPrompts(ends, block, [one.model for one in target.each_class])
        self._prefixes = list(prefixes) if self._warms else []
        self._files = ExitStack()
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def watch(self, prompts: Iterable[Prompt], *, further: bool) -> Iterator[Prompt]:
        """Yield the prompts of the run; where the cache is to be warm, write those that are sent before.

        Args:
            prompts: The prompts.
            further: Whether more of them are made while the run goes on.

        Raises:
            BadInput: Such prompts cannot be sent before.
        """
        if not self._warms:
            return self._shared.watch(prompts)
        files = self._files.enter_context(RequestFiles(self._folder, self._body, WARM_CACHE_PREFIX))
        if self._prefixes:
            for prompt in self._shared.keep(self._prefixes):
                self._send(files, prompt)
            return self._shared.watch(prompts)
        if further:
            problem = "warm cannot send prompts that are made while the run goes on"
            remedy = "give --num-prompts and --max-concurrency instead of a time, or a data set with prefixes"
            raise BadInput(CACHE, problem, remedy)
        return self._distinct(files, self._shared.watch(prompts, sent_before=True))

    def about(self, sha256: str) -> dict[str, Any]:
        """Return what a cache can give back of the prompts with this hash, and what is sent to warm it up, as JSON."""
        known = self._shared.about(sha256)
        if self._warms:
            known |= {"warm_requests": self._sent, "warmed_by": "prefix" if self._prefixes else "prompt"}
        return {"prefix_cache": known}

    def _distinct(self, files: RequestFiles, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        seen = set[int]()
        for prompt in prompts:
            if not prompt.follows and (mark := prompt_mark(prompt)) not in seen:
                seen.add(mark)
                self._send(files, prompt)
            yield prompt

    def _send(self, files: RequestFiles, prompt: Prompt) -> None:
        """Write a request for at most one token: the prompt is all that the cache is to keep."""
        files.add([replace(prompt, output_tokens=min(1, prompt.output_tokens))])
        self._sent += 1
