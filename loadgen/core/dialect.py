"""Dialect: where the streamed events of an API hold text, as data for the compiled scanner;
Delta: what one says.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct

from loadgen.core.event_flags import CONTENT, OTHER, REASONING
from loadgen.core.server_times import Times

KINDS = (CONTENT, REASONING, OTHER)
MAX_TYPES = 128
MAX_PATHS = 64
MAX_ROOTS = 16
MAX_KEYS = 4
RESERVED = ("error", "object")  # keys that every event may have


class Delta(Struct, frozen=True):
    """The facts that one event states.

    Attributes:
        kinds: The kinds of token that the event bears, a subset of TOKENS; 0 for role-only, empty,
            finish-only and usage-only events.
        says: Its other flags (event_flags.pxd).
        tokens: The number of its tokens by token ids, else by logprobs; -1: it has neither.
        text: The text of these tokens.
        answer: The text of those that are content.
        finish_reason: Why the answer ended, if this event says it.
        matched_stop: The stop word or token id that ended it, from SGLang's `matched_stop` or
            vLLM's `stop_reason`.
        prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens: The server's counts; -1:
        it gives none.
        total_tokens: The server's count of prompt and answer; -1: it gives none.
        unknown: The keys whose text no rule knows, which counts as tokens.
        has_nan: Whether it holds NaN or an infinity, which are not JSON: logprobs of a broken
            model.
        error: An error object inside the stream, as JSON text.
        times: What the server says of its time (`server_times`); None: nothing.
    """

    kinds: int = 0
    says: int = 0
    tokens: int = -1
    text: str = ""
    answer: str = ""
    finish_reason: str | None = None
    matched_stop: int | str | None = None
    prompt_tokens: int = -1
    completion_tokens: int = -1
    cached_tokens: int = -1
    reasoning_tokens: int = -1
    has_nan: bool = False
    error: str | None = None
    total_tokens: int = -1
    unknown: tuple[str, ...] = ()
    times: Times | None = None


class Dialect(Struct, frozen=True):
    """The events of an API that are not those of chat completions, completions or SGLang's
    /generate.

    Nearly all events of a stream bear text or say nothing. The compiled scanner reads these by
    `texts` and `silent` alone. `read` gets the few others: those that end the stream, count its
    tokens, or are not known. An event with an `error` that is not null, or with `object: error`,
    ends the stream as an error before that.

    Args:
        texts: For each type of event that bears text, where it may be: the keys that lead to it,
            joined by dots, each with CONTENT, REASONING or OTHER, and with TOOL if the text is part
            of a tool call (event_flags).
        silent: The types of events that say nothing.
        read: Returns what any other event says. It raises ValueError for one that the API does not
            have.
        type_key: The key of an event's type. The type is "" where it is missing.
        decisive: Keys of an event. If one of them is neither missing, null nor false, `read` gets
            the event in any case: for APIs whose last event bears text too.

    Raises:
        ValueError: The scanner cannot follow this description.
    """

    texts: Mapping[str, Mapping[str, int]]
    silent: Collection[str]
    read: Callable[[dict[str, Any]], Delta]
    type_key: str = "type"
    decisive: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        paths = [
            (path.split("."), flags)
            for where in self.texts.values()
            for path, flags in where.items()
        ]
        roots = {keys[0] for keys, _ in paths}
        if clash := roots & {*RESERVED, *self.decisive, self.type_key}:
            raise ValueError(
                f"{', '.join(sorted(clash))} cannot be text and decide about its event"
            )
        if any(sum(bool(flags & kind) for kind in KINDS) != 1 for _, flags in paths):
            raise ValueError("each text has one of the flags CONTENT, REASONING and OTHER")
        if any("" in keys or len(keys) > MAX_KEYS for keys, _ in paths):
            raise ValueError(f"a path has 1 to {MAX_KEYS} keys, joined by dots")
        types = len(self.texts) + len(self.silent)
        if (
            types > MAX_TYPES
            or len(paths) > MAX_PATHS
            or max(len(roots), len(self.decisive)) > MAX_ROOTS
        ):
            raise ValueError(
                f"more than {MAX_TYPES} types, {MAX_PATHS} texts or {MAX_ROOTS} first keys"
            )
