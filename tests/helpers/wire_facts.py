"""Facts: what one response said, and which of its events bear tokens, in plain Python."""

import json
from dataclasses import dataclass, field

from loadgen.core import event_flags
from loadgen.core.answer import BY_EVENTS, BY_IDS, BY_USAGE
from loadgen.core.dialect import Delta, Dialect
from loadgen.core.outcome import Outcome
from loadgen.core.server_times import Times

MAX_UNREAD = 200


@dataclass
class Facts:
    """What one response said; `outcome` is None while it is open.

    Stamps are offsets into the wire.
    """

    dialect: Dialect | None = None
    outcome: Outcome | None = None
    detail: str | None = None
    status: int = 0
    finish_reason: str | None = None
    prompt_tokens: int = -1
    completion_tokens: int = -1
    cached_tokens: int = -1
    reasoning_tokens: int = -1
    total_tokens: int = -1
    matched_stop: int | str | None = None
    times: Times | None = None
    nan_events: int = 0
    done_seen: bool = False
    kinds: list[int] = field(default_factory=list)  # of each token-bearing event
    stamps: list[int] = field(default_factory=list)
    # What each event says, and its stamp.
    stream: list[tuple[int, int]] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)  # that each of them bears
    counted_by: int = BY_EVENTS
    # Of each event with a token, and of each that may prove to bear one: its place in `stream`.
    places: list[int] = field(default_factory=list)
    maybe: list[int] = field(default_factory=list)
    unread: dict[str, tuple[int, str]] = field(default_factory=dict)
    text: bytes = b""  # of the events of `text_kinds` that came last
    text_kinds: int = 0
    text_events: int = 0
    closed: int = -1
    keep_alive: bool = True
    rest_s: int = 0  # how long the connection may lie idle, 0 where the server does not say

    def adds(self, delta: Delta) -> bool:
        """Whether its text is more than all text before once again."""
        if not delta.kinds or delta.says & event_flags.CUMULATIVE:
            return True
        text = _escaped(delta.text)
        if delta.kinds != self.text_kinds:
            self.text_kinds, self.text, self.text_events = delta.kinds, b"", 0
        longer = len(text) > len(self.text) or self.text_events >= 4
        same = text[:64].startswith(self.text[:64]) and len(text) >= len(self.text)
        again = len(self.text) if self.text and longer and same else 0
        self.text += text[again:]
        self.text_events += 1
        return again < len(text)

    def is_silent(self, delta: Delta) -> bool:
        """Whether an event without text bears a token, by its ids or by usage that has grown."""
        if not delta.says & event_flags.CHOICE:
            return False
        if delta.tokens > 0:
            return True
        names_role = delta.says & event_flags.ROLE and not delta.says & event_flags.BARE
        if names_role or delta.completion_tokens <= sum(self.tokens):
            return False
        if delta.says & event_flags.CUMULATIVE:
            return True
        if not self.kinds:
            empty = event_flags.EMPTY | event_flags.BARE
            return bool(delta.says & empty) and not delta.says & event_flags.FINISH
        # An event before the first one with a token makes it unclear whether usage lags.
        heads = self.maybe and self.maybe[0] < self.places[0]
        return self.counted_by == BY_USAGE and self.tokens[0] > 0 and not heads

    def bear(self, kinds: int, delta: Delta, at: int) -> None:
        """An event bears tokens: as many as usage in every event, or its ids or logprobs say,
        else one.
        """
        # Usage at the end alone says nothing of one event.
        running = not self.kinds or self.counted_by == BY_USAGE
        if delta.completion_tokens >= 0 and running:
            count, self.counted_by = max(0, delta.completion_tokens - sum(self.tokens)), BY_USAGE
        elif delta.tokens >= 0:
            count, self.counted_by = delta.tokens, BY_IDS
        else:
            count = 1
        self.kinds.append(kinds)
        self.stamps.append(at)
        self.tokens.append(count)
        self.places.append(len(self.stream) - 1)

    def settle(self) -> None:
        """Counts that cannot be true are not believed: none in most events, or none at all
        beside tokens seen.
        """
        prompt, answer = max(self.prompt_tokens, 0), self.completion_tokens
        reasoning = max(self.reasoning_tokens, 0)
        beside = self.total_tokens == prompt + answer + reasoning
        if answer > 0 and reasoning > 0 and beside:
            self.completion_tokens += reasoning
        if self.prompt_tokens == 0:
            self.prompt_tokens = self.cached_tokens = -1
        if self.counted_by == BY_EVENTS:
            self.promote()
        if self.kinds and self.completion_tokens == 0:
            self.completion_tokens = -1
        if not self.kinds:
            return
        if (
            self.counted_by == BY_USAGE
            and self.tokens[0] == 0
            and self.completion_tokens > sum(self.tokens)
        ):
            # They lag by one event.
            self.tokens = [*self.tokens[1:], self.completion_tokens - sum(self.tokens)]
        if 2 * self.tokens.count(0) > len(self.tokens):
            self.tokens, self.counted_by = [1] * len(self.tokens), BY_EVENTS

    def leave_unread(self, name: str, sample: bytes) -> None:
        """Count what no rule takes, with the first bytes of the first example."""
        name = name if name in self.unread or len(self.unread) < 8 else "others"
        example = sample[:MAX_UNREAD].decode("utf-8", "replace")
        count, first = self.unread.get(name, (0, example))
        self.unread[name] = (count + 1, first)

    def promote(self) -> None:
        """Events without text bear the tokens that are missing."""
        missing = self.completion_tokens - sum(self.tokens)
        if not any(kinds & event_flags.REASONING for kinds in self.kinds if kinds & 3 == 2):
            missing -= max(self.reasoning_tokens, 0)
        finishes = [n for n in self.maybe if self.stream[n][0] & event_flags.FINISH][:1]
        plain = [n for n in self.maybe if n not in finishes]
        first = min(self.places, default=0)
        heads = [n for n in plain if n < first]
        chosen = [n for n in plain if n >= first][: max(missing, 0)]
        left = missing - len(chosen)
        if left in (1, len(heads) + 1) and (self.kinds or plain):
            chosen += finishes
            left -= len(finishes)
        if left == len(heads):  # an opening chunk or a heartbeat bears none
            chosen += heads
        for place in sorted(chosen):
            at = sum(other < place for other in self.places)
            says, stamp = self.stream[place]
            self.stream[place] = (says | event_flags.SILENT, stamp)
            self.places.insert(at, place)
            self.kinds.insert(at, event_flags.SILENT)
            self.stamps.insert(at, stamp)
            self.tokens.insert(at, 1)

    def ended(self, outcome: Outcome, at: int, detail: str | None = None) -> None:
        self.outcome, self.closed, self.detail = outcome, at, detail


def _escaped(text: str) -> bytes:
    """A text as between the quotes of a JSON string, with no more escapes than needed."""
    try:
        return json.dumps(text, ensure_ascii=False).encode()[1:-1]
    except UnicodeEncodeError:
        return json.dumps(text).encode()[1:-1]
