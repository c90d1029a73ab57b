"""Continuous batching in virtual time: which sequences compute in which engine step, and how long the step takes.

Nothing here reads a clock or knows a socket: times are int64 ns that the caller supplies.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar


@dataclass(slots=True, eq=False)
class Sequence:
    """One prompt and the answer that grows behind it.

    Attributes:
        prompt_tokens: Length of the prompt; at least 1.
        output_tokens: Length the answer will have; at least 1.
        ready_ns: When the scheduler may first see it.
        generated: Tokens of the answer so far.
        prefilled: Tokens of the context computed so far, while it is being prefilled.
        held: Tokens of KV cache it holds.
    """

    prompt_tokens: int
    output_tokens: int
    ready_ns: int = 0
    generated: int = 0
    prefilled: int = 0
    held: int = 0


S = TypeVar("S", bound=Sequence)


@dataclass(frozen=True, slots=True)
class StepCosts:
    """What one engine step costs: `base_ns` plus so much for each token of its work."""

    base_ns: float
    prefill_ns_per_token: float
    decode_ns_per_seq: float
    kv_ns_per_token: float

    def duration_ns(self, prefill_tokens: int, decodes: int, kv_tokens: int) -> int:
        """Return the length of a step that prefills, decodes and attends to so many tokens."""
        return round(
            self.base_ns
            + self.prefill_ns_per_token * prefill_tokens
            + self.decode_ns_per_seq * decodes
            + self.kv_ns_per_token * kv_tokens
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine can hold at once.

    Attributes:
        max_num_seqs: Running sequences.
        max_num_batched_tokens: Tokens computed in one step; at least `max_num_seqs`, so that every decode has room.
        num_kv_tokens: Tokens of KV cache over all running sequences; no single sequence may need more.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    num_kv_tokens: int


@dataclass(slots=True)
class Step(Generic[S]):
    """One pass through the model: one token for every decoding sequence, and chunks of prompts."""

    begin_ns: int
    end_ns: int
    decodes: int
    chunks: list[tuple[S, int]]
    prefill_tokens: int


@dataclass(slots=True)
class Progress(Generic[S]):
    """The tokens that a step brought, in batch order: one for each sequence in exactly one of the lists.

    Attributes:
        started: First token, more to come.
        continued: A further token, more to come.
        finished: The last token, which may be the first as well.
    """

    started: list[S] = field(default_factory=list)
    continued: list[S] = field(default_factory=list)
    finished: list[S] = field(default_factory=list)


class Scheduler(Generic[S]):
    """First come, first served, with chunked prefill and preemption by recomputing.

    Call `plan` and `complete` by turns; `add` and `cancel` at any time.

    Attributes:
        kv_tokens: Tokens of KV cache in use: the sum of what running sequences hold.
        preemptions: How often a running sequence had to give up its cache.
    """

    def __init__(self, limits: Limits, costs: StepCosts) -> None:
        self.limits, self.costs = limits, costs
        self.kv_tokens = self.preemptions = 0
        self._waiting: OrderedDict[S, None] = OrderedDict()
        # In order of admission; whatever decodes was admitted before whatever is still being prefilled.
        self._prefilling: dict[S, None] = {}
        self._decoding: dict[S, None] = {}

    @property
    def running(self) -> int:
        """Sequences that hold KV cache."""
        return len(self._prefilling) + len(self._decoding)

    @property
    def waiting(self) -> int:
        """Sequences that hold none yet, or none any more."""
        return len(self._waiting)

    @property
    def next_ready_ns(self) -> int | None:
        """When the first waiting sequence becomes ready; None when none waits."""
        first = next(iter(self._waiting), None)
        return None if first is None else first.ready_ns

    def add(self, sequence: S) -> None:
        """Queue a sequence; `ready_ns` must not be before that of the one added last."""
        self._waiting[sequence] = None

    def cancel(self, sequence: S) -> None:
        """Forget a sequence, wherever it is; one that has finished is forgotten already."""
        for place in (self._waiting, self._prefilling, self._decoding):
            if sequence in place:
                del place[sequence]
                self._free(sequence)

    def plan(self, begin_ns: int) -> Step[S] | None:
        """Return the step that begins at `begin_ns`, or None when there is nothing to compute."""
        preempted = self._make_room_for_decodes()
        decodes = len(self._decoding)
        for sequence in self._decoding:
            sequence.held += 1
        self.kv_tokens += decodes

        budget = self.limits.max_num_batched_tokens - decodes
        chunks: list[tuple[S, int]] = []

        def prefill(sequence: S) -> None:
            nonlocal budget
            tokens = min(sequence.held - sequence.prefilled, budget)
            budget -= tokens
            chunks.append((sequence, tokens))

        for sequence in self._prefilling:
            if not budget:
                break
            prefill(sequence)
        if not preempted:
            while budget and (admitted := self._admit(begin_ns)) is not None:
                prefill(admitted)
        if not decodes and not chunks:
            return None
        prefill_tokens = self.limits.max_num_batched_tokens - decodes - budget
        duration_ns = self.costs.duration_ns(prefill_tokens, decodes, self.kv_tokens)
        return Step(begin_ns, begin_ns + duration_ns, decodes, chunks, prefill_tokens)

    def complete(self, step: Step[S]) -> Progress[S]:
        """Count the tokens that the planned step brought; finished sequences leave."""
        progress: Progress[S] = Progress()
        continued, finished = progress.continued.append, progress.finished.append
        for sequence in self._decoding:
            sequence.generated += 1
            (continued if sequence.generated < sequence.output_tokens else finished)(sequence)
        for sequence, tokens in step.chunks:
            if sequence not in self._prefilling:
                continue  # cancelled meanwhile
            sequence.prefilled += tokens
            if sequence.prefilled == sequence.held:
                del self._prefilling[sequence]
                self._decoding[sequence] = None
                sequence.generated += 1
                if sequence.generated == sequence.output_tokens:
                    finished(sequence)
                elif sequence.generated == 1:
                    progress.started.append(sequence)
                else:
                    continued(sequence)
        for sequence in progress.finished:
            del self._decoding[sequence]
            self._free(sequence)
        return progress

    def _make_room_for_decodes(self) -> bool:
        """Preempt the sequences admitted last until every other decode has room for its next token."""
        before = self.preemptions
        while self.kv_tokens + len(self._decoding) > self.limits.num_kv_tokens:
            sequence, _ = (self._prefilling or self._decoding).popitem()
            self._free(sequence)
            sequence.prefilled = 0
            self._waiting[sequence] = None
            self._waiting.move_to_end(sequence, last=False)
            self.preemptions += 1
        return self.preemptions > before

    def _admit(self, now_ns: int) -> S | None:
        """Take in the first waiting sequence if it is ready and its whole context has room."""
        sequence = next(iter(self._waiting), None)
        if sequence is None or sequence.ready_ns > now_ns or self.running >= self.limits.max_num_seqs:
            return None
        context = sequence.prompt_tokens + sequence.generated
        if self.kv_tokens + context > self.limits.num_kv_tokens:
            return None
        del self._waiting[sequence]
        self._prefilling[sequence] = None
        sequence.held = context
        self.kv_tokens += context
        return sequence

    def _free(self, sequence: S) -> None:
        self.kv_tokens -= sequence.held
        sequence.held = 0
