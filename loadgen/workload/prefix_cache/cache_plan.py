"""`CachePlan`: the prompts that warm a prefix cache up, and what a cache can give back of those of
a run.

`SharedPrompts` watches the prompts of a run on their way to its files, to know what they share;
`SharedBlocks` counts it block by block.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
from msgspec import structs

from loadgen.config.load import CACHE, WARM, CacheProtocol
from loadgen.errors import BadInput, setting
from loadgen.workload.chat_template.prediction import template_variables
from loadgen.workload.endpoints.api import LENGTHS
from loadgen.workload.files import cache
from loadgen.workload.image import has_images
from loadgen.workload.prefix_cache.cache_block import CacheBlock
from loadgen.workload.prefix_cache.token_ends import TokenEnds, TokenizedPrompt
from loadgen.workload.prompt import Prompt, prompt_mark
from loadgen.workload.request_store import WARM_CACHE_PREFIX, RequestFiles
from loadgen.workload.target import Target

KIND, VERSION = "shared", 1
MAX_KEPT = 1 << 26  # characters of prompts that are kept, to be counted once all are known
MAX_BLOCKS = 10_000_000  # 90 MB of names, and seconds to sort them
TOO_MANY = f"the prompts have more than {MAX_BLOCKS:,} blocks"
UNKNOWN_TOKENS = (
    "only the server knows the tokens of images, of tools, and of several texts in a request"
)
UNKNOWN_TEMPLATE = "prompts have tools, or the chat template leaves messages out"
NO_TOKENIZER = "the data set uses no tokenizer"


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
        self._warms = protocol == WARM
        self._folder = folder
        self._body = target.body
        self._shared = SharedPrompts(
            ends, block, [request_class.model for request_class in target.each_class]
        )
        self._prefixes = list(prefixes) if self._warms else []
        self._files = ExitStack()
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def watch(self, prompts: Iterable[Prompt], *, further: bool) -> Iterator[Prompt]:
        """Yield the prompts of the run; where the cache is to be warm, write those that are sent
        before.

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
            remedy = (
                f"give {setting.num_prompts} and {setting.max_concurrency} instead of a time, or a "
                "data set with prefixes"
            )
            raise BadInput(CACHE, problem, remedy)
        return self._distinct(files, self._shared.watch(prompts, sent_before=True))

    def about(self, sha256: str) -> dict[str, Any]:
        """Return what a cache can give back of the prompts with this hash, and what is sent to
        warm it up, as JSON.
        """
        facts = self._shared.about(sha256)
        if self._warms:
            facts |= {
                "warm_requests": self._sent,
                "warmed_by": "prefix" if self._prefixes else "prompt",
            }
        return {"prefix_cache": facts}

    def _distinct(self, files: RequestFiles, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        seen = set[int]()
        for prompt in prompts:
            if not prompt.follows and (mark := prompt_mark(prompt)) not in seen:
                seen.add(mark)
                self._send(files, prompt)
            yield prompt

    def _send(self, files: RequestFiles, prompt: Prompt) -> None:
        """Write a request for at most one token: the prompt is all that the cache is to keep."""
        fields = {name: value for name, value in prompt.fields.items() if name not in LENGTHS}
        tokens = min(1, prompt.output_tokens)
        files.add([structs.replace(prompt, output_tokens=tokens, fields=fields, verbatim=False)])
        self._sent += 1


class SharedPrompts:
    """Counts what a prefix cache can give back of the prompts that pass it, at best.

    Prompts are kept until all have passed, for what they share may be known from an earlier run: to
    encode a million tokens of text takes seconds. Where there are too many to keep, they are
    counted at once.

    Args:
        ends: Tokenizes the prompts; None: there is no tokenizer.
        block: The unit of the cache.
        models: The model or adapter of each class of requests; a cache keeps their prompts apart.
    """

    def __init__(
        self, ends: TokenEnds | None, block: CacheBlock, models: Sequence[str] = ("",)
    ) -> None:
        self._ends = ends
        self._block = block
        self._blocks = SharedBlocks(block.tokens)
        self._kept: list[tuple[Prompt, bool]] = []  # with whether it is sent before the run
        self._models = models
        self._characters = 0
        self._were_too_many = False
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
        """Return what is known, as JSON: the block, and what is shared of how many tokens; or why
        it is unknown.

        Args:
            sha256: The hash of the prompts of the run.
        """
        if self._unknown is not None or self._ends is None:
            shared: dict[str, Any] = {"unknown": self._unknown}
        elif self._were_too_many or len({*self._models}) > 1:  # the hash says nothing of models
            shared = self._count()
        else:
            before = sum(is_before for _, is_before in self._kept)
            key = [VERSION, sha256, self._block.tokens, before, *self._ends.key]
            shared = cache.get_or_make_fact(KIND, self._ends.tokenizer.sha256, key, self._count)
        return {"block_size": self._block.tokens, "block_size_from": self._block.source} | shared

    def _see(self, prompt: Prompt, *, before: bool) -> None:
        if self._unknown is not None:
            return
        calls_tools = any(message.get("tool_calls") for message in prompt.messages)
        if (
            prompt.texts
            or has_images(prompt.messages)
            or template_variables(prompt.fields)
            or calls_tools
        ):
            self._unknown = UNKNOWN_TOKENS
            self._kept.clear()
            return
        self._kept.append((prompt, before))
        self._characters += len(prompt.text) or sum(
            len(str(message.get("content"))) for message in prompt.messages
        )
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
            (self._blocks.keep if before else self._blocks.add)(
                tokenized, self._models[prompt.class_number]
            )
        self._kept.clear()


class SharedBlocks:
    """Names the blocks of prompts, and counts those that an earlier prompt has too.

    A block has a name that depends on all tokens up to its end. A prompt finds a block if the name
    was seen before. It never finds its last token, which a server computes to have the first one of
    the answer.

    Args:
        block_size: Tokens of a block.

    Attributes:
        tokens: Tokens of the prompts of the run so far.
    """

    def __init__(self, block_size: int) -> None:
        self._size = block_size
        # 9 bytes a block: sets of names would take a hundred
        self._names, self._looked_up = (array("q"), array("b"))
        self.tokens = 0

    def keep(self, prompt: TokenizedPrompt, model: str) -> None:
        """Put a prompt into the cache before the run."""
        self._add(self._names_of(prompt, model), 0)

    def add(self, prompt: TokenizedPrompt, model: str) -> None:
        """Add the next prompt of the run; what it repeats up to an answer is there since that
        answer.
        """
        names = self._names_of(prompt, model)
        if prompt.answered:
            self._add(names[: prompt.answered // self._size], 0)
        self._add(names, max(0, prompt.tokens - 1) // self._size)
        self.tokens += prompt.tokens

    @property
    def count(self) -> int:
        """Names so far."""
        return len(self._names)

    def shared_tokens(self) -> int:
        """Count the tokens that a cache can give back which keeps all it has seen."""
        if not self._names:
            return 0
        names, looked_up = (
            np.frombuffer(self._names, np.int64),
            np.frombuffer(self._looked_up, np.int8),
        )
        order = np.argsort(names, kind="stable")  # of equal names the earliest first
        is_first = np.ones(len(names), np.bool_)
        is_first[1:] = names[order][1:] != names[order][:-1]
        hits = int(looked_up.sum()) - int(looked_up[order][is_first].sum())
        return hits * self._size

    def _add(self, names: list[int], looked_up: int) -> None:
        self._names.extend(names)
        count = min(looked_up, len(names))
        self._looked_up.extend([1] * count + [0] * (len(names) - count))

    def _names_of(self, prompt: TokenizedPrompt, model: str) -> list[int]:
        size = self._size
        text = prompt.text
        names = []
        whole_before, before = divmod(prompt.before, size)
        cuts = prompt.ends[size - before - 1 :: size].tolist()
        name = hash(model)
        begin = 0
        for end in [0] * whole_before + cuts:
            name = hash((name, text[begin:end]))
            names.append(name)
            begin = end
        return names
