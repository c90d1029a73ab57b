"""Scheduler: continuous batching in virtual time: the sequences of each engine step, and the length
of the step.

Nothing here reads a clock or uses a socket. Times are int64 ns that the caller supplies.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from loadgen.engines.sim.prefix_cache import BLOCK, PrefixCache


@dataclass(slots=True, eq=False)
class Sequence:
    """One prompt and its answer.

    Attributes:
        prompt_tokens: Length of the prompt; at least 1.
        output_tokens: Length of the complete answer; at least 1.
        ready_ns: When the scheduler may first see it.
        blocks: Names of the prompt's full blocks in the prefix cache; empty: the cache is not used.
        priority: A lower number is admitted earlier, and preempted later.
        generated: Tokens of the answer so far.
        prefilled: Tokens of the context computed so far, while it is being prefilled.
        held: Tokens of KV cache it holds alone.
        shared: Tokens of KV cache it holds in blocks that others may hold too.
        cached: Tokens of the prompt that were found in the prefix cache.
        scheduled_ns: When the first step began that computed some of it; 0: none has.
        first_ns, last_ns: When the steps of its first and its last token ended; 0: none has.
    """

    prompt_tokens: int
    output_tokens: int
    ready_ns: int = 0
    blocks: tuple[int, ...] = ()
    priority: int = 0
    generated: int = 0
    prefilled: int = 0
    held: int = 0
    shared: int = 0
    cached: int = 0
    scheduled_ns: int = 0
    first_ns: int = 0
    last_ns: int = 0


S = TypeVar("S", bound=Sequence)


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Coefficients of a step's length, ns; `duration_ns` has the formula.

    Attributes:
        base_ns: For every step.
        prefill_ns_per_token: For each prompt token.
        decode_ns_per_seq: For each decoding sequence.
        kv_ns_per_token: For each token of context, whose keys and values are read.
        weights_ns: Reading the weights, the minimum time of the matrix products.
        matmul_ns_per_token: Matrix products for each token, if that is longer.
        attention_ns_per_pair: For each pair of a prompt token and a token that it attends to.
    """

    base_ns: float
    prefill_ns_per_token: float
    decode_ns_per_seq: float
    kv_ns_per_token: float
    weights_ns: float = 0.0
    matmul_ns_per_token: float = 0.0
    attention_ns_per_pair: float = 0.0

    def duration_ns(
        self, prefill_tokens: float, decodes: float, kv_tokens: float, pairs: float = 0.0
    ) -> float:
        """Return the length of a step, ns.

        Args:
            prefill_tokens: Prompt tokens that are computed.
            decodes: Sequences that get another token.
            kv_tokens: Tokens of context of all sequences.
            pairs: Pairs of a prompt token and a token that it attends to.
        """
        return (
            self.base_ns
            + max(self.weights_ns, self.matmul_ns_per_token * (prefill_tokens + decodes))
            + self.prefill_ns_per_token * prefill_tokens
            + self.decode_ns_per_seq * decodes
            + self.kv_ns_per_token * kv_tokens
            + self.attention_ns_per_pair * pairs
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an engine.

    Attributes:
        max_num_seqs: Running sequences.
        max_num_batched_tokens: Tokens computed in one step; at least `max_num_seqs`, so that every
            decode fits.
        num_kv_tokens: Tokens of KV cache over all running sequences; no single sequence may need
            more.
        chunked_prefill: Whether a prompt may be computed in several steps; otherwise each must fit
            into one step.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    num_kv_tokens: int
    chunked_prefill: bool = True


@dataclass(slots=True)
class Step(Generic[S]):
    """One engine step: one token for every decoding sequence, and chunks of prompts.

    Attributes:
        begin_ns: When it begins.
        end_ns: When it ends.
        decodes: Number of decoding sequences.
        chunks: Each sequence that is prefilled, with the tokens that are computed of it.
        prefill_tokens: Sum of these tokens.
    """

    begin_ns: int
    end_ns: int
    decodes: int
    chunks: list[tuple[S, int]]
    prefill_tokens: int


@dataclass(slots=True)
class Progress(Generic[S]):
    """The sequences that got a token in a step, in batch order, each in exactly one of the lists.

    Attributes:
        started: Sequences with their first token; more will come.
        continued: Sequences with another token; more will come.
        finished: Sequences with their last token, which may also be the first.
    """

    started: list[S] = field(default_factory=list)
    continued: list[S] = field(default_factory=list)
    finished: list[S] = field(default_factory=list)


class WaitingQueue(Generic[S]):
    """The sequences that wait to hold KV cache, by priority, and first come, first served within
    one.

    Sequences of one priority are added in the order in which they are ready.
    """

    def __init__(self) -> None:
        self._levels: dict[int, OrderedDict[S, None]] = {}  # by priority, ascending; none is empty

    def __len__(self) -> int:
        return sum(map(len, self._levels.values()))

    def __contains__(self, sequence: S) -> bool:
        return sequence in self._levels.get(sequence.priority, ())

    @property
    def next_ready_ns(self) -> int | None:
        """When the first sequence is ready, ns; None if none waits."""
        return min((next(iter(level)).ready_ns for level in self._levels.values()), default=None)

    def add(self, sequence: S, *, first: bool = False) -> None:
        """Queue a sequence, as the last or the first of its priority."""
        if sequence.priority not in self._levels:
            self._levels[sequence.priority] = OrderedDict()
            self._levels = dict(sorted(self._levels.items()))
        level = self._levels[sequence.priority]
        level[sequence] = None
        if first:
            level.move_to_end(sequence, last=False)

    def first(self, now_ns: int) -> S | None:
        """Return the sequence whose turn it is among those that are ready at `now_ns`; None if
        none is.
        """
        for level in self._levels.values():
            sequence = next(iter(level))
            if sequence.ready_ns <= now_ns:
                return sequence
        return None

    def remove(self, sequence: S) -> None:
        """Remove a sequence that waits."""
        level = self._levels[sequence.priority]
        del level[sequence]
        if not level:
            del self._levels[sequence.priority]


def no_noise() -> float:
    """Return the factor 1: every step takes its planned time."""
    return 1.0


class Scheduler(Generic[S]):
    """Serves by priority, and first come, first served within one, with chunked prefill and shared
    prefixes.

    A sequence that runs is preempted where others need its cache, never for a priority, and is then
    recomputed.

    Call `plan` and `complete` in turn; `add` and `cancel` at any time.

    Args:
        limits: Limits of the engine.
        costs: Costs of its steps.
        noise: Called for each step; returns a factor of its length.

    Attributes:
        kv_tokens: Tokens of KV cache that running sequences hold, alone or shared.
        preemptions: How often a running sequence lost its cache.
        cache: The prefix cache.
    """

    def __init__(
        self, limits: Limits, costs: StepCosts, noise: Callable[[], float] = no_noise
    ) -> None:
        self.limits = limits
        self.costs = costs
        self._noise = noise
        self.kv_tokens = self.preemptions = 0
        self.cache = PrefixCache()
        self._shared_extra = (
            0  # tokens of shared blocks, counted once for each user after the first
        )
        self._waiting: WaitingQueue[S] = WaitingQueue()
        # In order of admission; all decoding sequences were admitted before all prefilling ones.
        self._prefilling: dict[S, None] = {}
        self._decoding: dict[S, None] = {}

    @property
    def running(self) -> int:
        """Number of sequences that hold KV cache."""
        return len(self._prefilling) + len(self._decoding)

    @property
    def waiting(self) -> int:
        """Number of sequences that wait to hold KV cache."""
        return len(self._waiting)

    @property
    def next_ready_ns(self) -> int | None:
        """When the first waiting sequence is ready, ns; None if none waits."""
        return self._waiting.next_ready_ns

    def add(self, sequence: S) -> None:
        """Queue a sequence; its `ready_ns` must not be before that of the last one of its
        priority.
        """
        self._waiting.add(sequence)

    def cancel(self, sequence: S) -> None:
        """Remove a sequence; a finished one is removed already."""
        if sequence in self._waiting:
            self._waiting.remove(sequence)
        for running in (self._prefilling, self._decoding):
            if sequence in running:
                del running[sequence]
                self._free(sequence)

    def plan(self, begin_ns: int) -> Step[S] | None:
        """Return the step that begins at `begin_ns`; None if there is nothing to compute."""
        preempted = self._make_room_for_decodes()
        decodes = len(self._decoding)
        for sequence in self._decoding:
            sequence.held += 1
        self.kv_tokens += decodes

        budget = self.limits.max_num_batched_tokens - decodes
        pairs = 0.0
        chunks: list[tuple[S, int]] = []

        def prefill(sequence: S) -> None:
            nonlocal budget, pairs
            tokens = min(sequence.held + sequence.shared - sequence.prefilled, budget)
            budget -= tokens
            pairs += tokens * (sequence.prefilled + (tokens + 1) / 2)
            chunks.append((sequence, tokens))

        for sequence in self._prefilling:
            if not budget:
                break
            prefill(sequence)
        if not preempted:
            while budget and (admitted := self._admit(begin_ns, budget)) is not None:
                prefill(admitted)
        if not decodes and not chunks:
            return None
        self.cache.shrink(self.limits.num_kv_tokens - self.kv_tokens)
        prefill_tokens = self.limits.max_num_batched_tokens - decodes - budget
        cost_ns = self.costs.duration_ns(
            prefill_tokens, decodes, self.kv_tokens + self._shared_extra, pairs
        )
        return Step(
            begin_ns, begin_ns + round(cost_ns * self._noise()), decodes, chunks, prefill_tokens
        )

    def complete(self, step: Step[S]) -> Progress[S]:
        """Add the tokens of the planned step to its sequences, and remove the finished ones."""
        progress: Progress[S] = Progress()
        continued = progress.continued.append
        finished = progress.finished.append
        for sequence in self._decoding:
            sequence.generated += 1
            (continued if sequence.generated < sequence.output_tokens else finished)(sequence)
        for sequence, tokens in step.chunks:
            if sequence not in self._prefilling:
                continue  # cancelled during the step
            sequence.prefilled += tokens
            if sequence.prefilled == sequence.held + sequence.shared:
                self._share(sequence, len(sequence.blocks))
                del self._prefilling[sequence]
                self._decoding[sequence] = None
                sequence.generated += 1
                if sequence.generated == sequence.output_tokens:
                    finished(sequence)
                elif sequence.generated == 1:
                    progress.started.append(sequence)
                else:
                    continued(sequence)
        for sequence in progress.started:
            sequence.first_ns = step.end_ns
        for sequence in progress.finished:
            sequence.first_ns = sequence.first_ns or step.end_ns
            sequence.last_ns = step.end_ns
            del self._decoding[sequence]
            self._free(sequence)
        return progress

    def _make_room_for_decodes(self) -> bool:
        """Preempt sequences until all other decodes have room; return whether any was preempted.

        Those of the highest number of a priority go first, and of these the one admitted last.
        """
        before = self.preemptions
        while self.kv_tokens + len(self._decoding) > self.limits.num_kv_tokens:
            latest_first = (*reversed(self._prefilling), *reversed(self._decoding))
            sequence = max(latest_first, key=lambda running: running.priority)
            del (self._prefilling if sequence in self._prefilling else self._decoding)[sequence]
            self._free(sequence)
            sequence.prefilled = 0
            self._waiting.add(sequence, first=True)
            self.preemptions += 1
        return self.preemptions > before

    def _admit(self, now_ns: int, budget: int) -> S | None:
        """Admit the waiting sequence whose turn it is if its whole context has room; return it."""
        sequence = self._waiting.first(now_ns)
        if sequence is None or self.running >= self.limits.max_num_seqs:
            return None
        context = sequence.prompt_tokens + sequence.generated
        # The last token is always computed, since the next one comes from it.
        cached_blocks = self.cache.count_cached(sequence.blocks[: (context - 1) // BLOCK])
        alone = context - BLOCK * cached_blocks
        if (
            self.kv_tokens + alone + self.cache.unused(sequence.blocks[:cached_blocks])
            > self.limits.num_kv_tokens
        ):
            return None
        if not self.limits.chunked_prefill and alone > budget:
            return None
        self._waiting.remove(sequence)
        self._prefilling[sequence] = None
        sequence.scheduled_ns = sequence.scheduled_ns or now_ns
        sequence.held = context
        self.kv_tokens += context
        self._share(sequence, cached_blocks)
        sequence.prefilled = sequence.shared
        if sequence.blocks and not sequence.generated:
            sequence.cached = sequence.shared
            self.cache.queried += sequence.prompt_tokens
            self.cache.hit += sequence.cached
        return sequence

    def _share(self, sequence: S, blocks: int) -> None:
        """Share the first `blocks` blocks of a sequence with other sequences that hold the same."""
        more = sequence.blocks[sequence.shared // BLOCK : blocks]
        if more:
            tokens = BLOCK * len(more)
            fresh = self.cache.take(more)
            sequence.held -= tokens
            sequence.shared += tokens
            self.kv_tokens -= tokens - fresh
            self._shared_extra += tokens - fresh

    def _free(self, sequence: S) -> None:
        self.kv_tokens -= sequence.held
        if sequence.shared:
            freed = self.cache.release(sequence.blocks[: sequence.shared // BLOCK])
            self.kv_tokens -= freed
            self._shared_extra -= sequence.shared - freed
        sequence.held = sequence.shared = 0
