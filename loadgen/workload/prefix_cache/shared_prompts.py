"""`SharedPrompts`: watches the prompts of a run on their way to its files, to know what they share."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from loadgen.workload.chat_template.prediction import template_variables
from loadgen.workload.image import has_images
from loadgen.workload.prefix_cache.cache_block import CacheBlock
from loadgen.workload.prefix_cache.shared_blocks import SharedBlocks
from loadgen.workload.prefix_cache.token_ends import TokenEnds
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer import fact_cache

KIND, VERSION = "shared", 1
MAX_KEPT = 1 << 26  # characters of prompts that are kept, to be counted once all are known
MAX_BLOCKS = 10_000_000  # 90 MB of names, and seconds to sort them
TOO_MANY = f"the prompts have more than {MAX_BLOCKS:,} blocks"
UNKNOWN_TOKENS = "only the server knows the tokens of images, of tools, and of several texts in a request"
UNKNOWN_TEMPLATE = "prompts have tools, or the chat template leaves messages out"
NO_TOKENIZER = "the data set uses no tokenizer"


class SharedPrompts:
    """Counts what a prefix cache can give back of the prompts that pass it, at best.

    Prompts are kept until all have passed, for what they share may be known from an earlier run: to encode a million
    tokens of text takes seconds. Where there are too many to keep, they are counted at once.

    Args:
        ends: Tokenizes the prompts; None: there is no tokenizer.
        block: The unit of the cache.
        models: The model or adapter of each class of requests; a cache keeps their prompts apart.
    """

    def __init__(self, ends: TokenEnds | None, block: CacheBlock, models: Sequence[str] = ("",)) -> None:
        self._ends, self._block, self._blocks = ends, block, SharedBlocks(block.tokens)
        self._kept: list[tuple[Prompt, bool]] = []  # with whether it is sent before the run
        self._models = models
        self._characters, self._were_too_many = 0, False
        self._unknown = NO_TOKENIZER if ends is None else None

    def keep(self, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        """Yield prompts that are sent before the run."""
        for prompt in prompts:
            self._see(prompt, before=True)
            yield prompt

    def watch(self, prompts: Iterable[Prompt], *, sent_before: bool = False) -> Iterator[Prompt]:
        """Yield the prompts of the run.

        Args:
            prompts: The prompts.
            sent_before: Whether each of them that begins a session is sent before the run, too.
        """
        for prompt in prompts:
            if sent_before and not prompt.follows:
                self._see(prompt, before=True)
            self._see(prompt, before=False)
            yield prompt

    def about(self, sha256: str) -> dict[str, Any]:
        """Return what is known, as JSON: the block, and what is shared of how many tokens; or why it is unknown."""
        if self._unknown is not None or self._ends is None:
            found: dict[str, Any] = {"unknown": self._unknown}
        elif self._were_too_many or len({*self._models}) > 1:  # the hash says nothing of models
            found = self._count()
        else:
            before = sum(is_before for _, is_before in self._kept)
            key = [VERSION, sha256, self._block.tokens, before, *self._ends.key]
            found = fact_cache.get_or_make(KIND, self._ends.tokenizer.sha256, key, self._count)
        return {"block_size": self._block.tokens, "block_size_from": self._block.source} | found

    def _see(self, prompt: Prompt, *, before: bool) -> None:
        if self._unknown is not None:
            return
        calls_tools = any(message.get("tool_calls") for message in prompt.messages)
        if prompt.texts or has_images(prompt.messages) or template_variables(prompt.fields) or calls_tools:
            self._unknown = UNKNOWN_TOKENS
            self._kept.clear()
            return
        self._kept.append((prompt, before))
        self._characters += len(prompt.text) or sum(len(str(message.get("content"))) for message in prompt.messages)
        if self._characters > MAX_KEPT:
            self._were_too_many = True
            self._count_kept()

    def _count(self) -> dict[str, Any]:
        self._count_kept()
        if self._unknown is not None:
            return {"unknown": self._unknown}
        return {"tokens": self._blocks.tokens, "shared_tokens": self._blocks.shared_tokens()}

    def _count_kept(self) -> None:
        assert self._ends is not None
        for prompt, before in self._kept:
            tokenized = self._ends.tokenize(prompt)
            if tokenized is None or self._blocks.count > MAX_BLOCKS:
                self._unknown = UNKNOWN_TEMPLATE if tokenized is None else TOO_MANY
                break
            (self._blocks.keep if before else self._blocks.add)(tokenized, self._models[prompt.class_number])
        self._kept.clear()
