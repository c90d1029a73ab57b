"""Replay: a run in the simulator's scheduler, with the costs of a step that its arrivals show,
under other limits: what a change would bring.
"""

from array import array
from typing import NamedTuple

import numpy as np
from msgspec import Struct, structs

from loadgen.engines.sim import scheduler
from loadgen.explanation.request_columns import MS, RequestColumns
from loadgen.explanation.step_costs import StepCosts
from loadgen.explanation.steps import Arrivals
from loadgen.report.result.explanation import BeforeAfter, PredictedChange
from loadgen.util.arrays import Floats, Int64s

MOST_TOKENS = 200_000  # that are replayed: half a second
MOST_ERROR = 0.15  # of the replay of the run as it was, above which nothing is predicted
JUDGED = ("ttft_p50", "e2el")
ERRORS = 2.0  # standard errors by which the cost of a stream may be wrong
FASTEST = 0.05  # share of the requests whose TTFT says what is outside of the engine
MOST_CAP_MS = 1.0  # mean wait for loadgen's own cap; else requests come when others end
UNLIMITED = 1 << 30


class Times(NamedTuple):
    """When the first and the last tokens of requests came, and the gaps between tokens, ns."""

    first: Int64s
    last: Int64s
    gaps: Int64s

    def later(self, by_ns: int) -> "Times":
        """Return them so much later."""
        return Times(self.first + by_ns, self.last + by_ns, self.gaps)


class Replay(Struct, frozen=True):
    """Requests, the costs of a step, and the way to the engine.

    Attributes:
        requests, arrivals, costs: Of a run.
        outside_ms: From sent until the scheduler sees a request, at most.
    """

    requests: RequestColumns
    arrivals: Arrivals
    costs: StepCosts
    outside_ms: float

    @property
    def is_possible(self) -> bool:
        """Whether the requests of the run do not depend on each other's ends, of one server, and
        are few enough.
        """
        requests = self.requests
        waits_ms = float((requests.ready - requests.due).mean()) * MS
        return (
            float(requests.tokens.sum()) <= MOST_TOKENS
            and waits_ms <= MOST_CAP_MS
            and int(requests.turn.max()) < 1
            and int(np.ptp(requests.target)) == 0
        )

    @property
    def slots(self) -> int:
        """The most streams that had a token at the end of a step."""
        return self._most(np.ones(len(self.arrivals.step)))

    @property
    def kv_tokens(self) -> int:
        """The most tokens of context that streams had at the end of a step: those of a KV cache
        that was full.
        """
        arrivals = self.arrivals
        sums = np.cumsum(arrivals.tokens)
        begins = np.flatnonzero(arrivals.is_first)
        before = np.repeat((sums - arrivals.tokens)[begins], np.diff(np.append(begins, len(sums))))
        context = self.requests.prompt[arrivals.stream] + sums - before - 1
        return max(self._most(context), int(context.max()))

    def _most(self, values: Floats) -> int:
        """The greatest sum of the arrivals of a step; where a stream has two tokens in one, two
        steps are seen as one, which does not count.
        """
        stream, step = self.arrivals.stream, self.arrivals.step
        again = np.append(False, (np.diff(stream) == 0) & (np.diff(step) == 0))
        is_one = np.bincount(step, again | (self.arrivals.tokens > 1)) == 0
        return int((np.bincount(step, values) * is_one).max())

    def predict(
        self, change: str, now: dict[str, int], then: dict[str, int], every: int = 1
    ) -> PredictedChange | None:
        """Replay the run as it was and under other limits; None where the first is not near to what
        was measured, or where the second depends on what a stream costs, which is not known well
        enough.

        Args:
            change: What is changed, for readers.
            now, then: Limits of the scheduler: as they are, and changed.
            every: One in so many requests is replayed then: the others go to other replicas.
        """
        if np.isnan(self.costs.stream_error_ms):  # there was never more than one
            return None
        requests = self.requests
        streams = np.diff(requests.stream) == 0
        gaps = np.diff(requests.event)[streams]
        measured = self._summary(Times(requests.first, requests.last, gaps), 1)
        before = self._run(now, 1)
        outside_ns = self._outside_ns(before)
        replayed = self._summary(before.later(outside_ns), 1)
        errors = [abs(replayed[name] / measured[name] - 1) for name in JUDGED]
        if max(errors) > MOST_ERROR:
            return None
        changed, *doubted = (
            self._summary(one._run(then, every).later(outside_ns), every)
            for one in (self, self._tilted(-ERRORS), self._tilted(ERRORS))
        )
        for other in doubted:
            if max(abs(other[name] / changed[name] - 1) for name in JUDGED) > MOST_ERROR:
                return None
        pairs = {
            name: BeforeAfter(now_ms=ms, then_ms=changed[name]) for name, ms in measured.items()
        }
        return PredictedChange(change=change, error=max(errors), **pairs)

    def first(self, limit: str, what: str, now: int) -> PredictedChange | None:
        """Predict twice a limit, or four times, where more can be said of that."""
        tried = (
            self.predict(f"{many} {what} for {now}", {limit: now}, {limit: many})
            for many in (2 * now, 4 * now)
        )
        return next(filter(None, tried), None)

    def _tilted(self, errors: float) -> "Replay":
        return structs.replace(self, costs=self.costs.tilted(errors))

    def _outside_ns(self, replayed: Times) -> int:
        """What was outside of the engine: what the requests that are fastest in a replay took
        beyond it, which has no way to the engine. The first estimate is too high where others
        waited, too.
        """
        waited = replayed.first - self.requests.sent
        fastest = np.argsort(waited, kind="stable")[: max(5, int(FASTEST * len(waited)))]
        beyond = float(np.median((self.requests.first - replayed.first)[fastest]))
        return int(max(0.0, min(self.outside_ms / MS, beyond)))

    def _summary(self, times: Times, every: int) -> dict[str, float]:
        ttfts = times.first - self.requests.sent[::every]
        p50, p99 = np.percentile(ttfts, [50, 99]).tolist()
        gap_p99 = float(np.percentile(times.gaps, 99)) if len(times.gaps) else 0.0
        return {
            "ttft_p50": p50 * MS,
            "ttft_p99": p99 * MS,
            "gap_p99": gap_p99 * MS,
            "e2el": float((times.last - self.requests.due[::every]).mean() * MS),
        }

    def _run(self, limits: dict[str, int], every: int) -> Times:
        """Serve each n-th request under some limits, from the moment at which it was sent."""
        costs = self.costs
        stream_ns = costs.stream_ms / MS
        engine = scheduler.Scheduler[scheduler.Sequence](
            scheduler.Limits(
                max_num_seqs=limits.get("max_num_seqs", UNLIMITED),
                max_num_batched_tokens=limits.get("max_num_batched_tokens", UNLIMITED),
                num_kv_tokens=limits.get("num_kv_tokens", UNLIMITED),
            ),
            scheduler.StepCosts(
                costs.base_ms / MS - stream_ns, costs.prompt_ms / MS, stream_ns, 0.0
            ),
        )
        requests = self.requests
        ready = requests.sent[::every]
        order = np.argsort(ready, kind="stable")
        sequences = {}
        for place in order.tolist():
            prompt = max(1, int(requests.prompt[place * every]))
            answer = int(requests.tokens[place * every])
            sequence = scheduler.Sequence(prompt, answer, ready_ns=int(ready[place]))
            sequences[id(sequence)] = place, sequence
            engine.add(sequence)
        first, last = np.zeros_like(ready), np.zeros_like(ready)
        gaps = array("q")
        now_ns = 0
        while engine.running or engine.waiting:
            step = engine.plan(now_ns)
            if step is None:
                now_ns = engine.next_ready_ns or now_ns
                continue
            now_ns = step.end_ns
            progress = engine.complete(step)
            for sequence in (*progress.started, *progress.continued, *progress.finished):
                place, _ = sequences[id(sequence)]
                if last[place]:
                    gaps.append(now_ns - last[place])
                else:
                    first[place] = now_ns
                last[place] = now_ns
        return Times(first, last, np.array(gaps))


def prediction(name: str, replay: Replay) -> PredictedChange | None:
    """Predict what the advice on a cause would bring; None: that is not known.

    Args:
        name: The cause.
        replay: Of the run.
    """
    if not replay.is_possible:
        return None
    costs, slots = replay.costs, replay.slots
    if name == "queue-slots":
        return replay.first("max_num_seqs", "slots", slots)
    if name == "kv" and not replay.requests.cached.any():
        return replay.first("num_kv_tokens", "tokens of KV cache", replay.kv_tokens)
    if name == "prefill-others" and costs.knows_prompt:
        longest = int(replay.requests.prompt.max())
        step = 1 << max(6, round(np.log2(costs.base_ms / costs.prompt_ms)))
        # Each stream needs a token of a step.
        tried = (
            replay.predict(
                f"{limit} tokens a step",
                {},
                {"max_num_batched_tokens": limit, "max_num_seqs": limit},
            )
            for limit in (max(factor * step, slots) for factor in (1, 2, 4))
            if limit < longest
        )
        found = [predicted for predicted in tried if predicted is not None]
        good = (predicted for predicted in found if not predicted.is_bad)
        return next(good, found[0] if found else None)
    if name == "decode-batch":
        return replay.predict("two replicas for one", {}, {}, every=2)
    return None
