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
from loadgen.util.arrays import Int64s

MOST_TOKENS = 200_000  # that are replayed: half a second
MOST_ERROR = 0.15  # of the replay of the run as it was, above which nothing is predicted
JUDGED = ("ttft_p50", "e2el")
SLOWER = 1.03  # as the costs of a step may be; near its limit, a server is much slower then
MOST_CAP_MS = 1.0  # mean wait for loadgen's own cap; else requests come when others end
UNLIMITED = 1 << 30


class Times(NamedTuple):
    """When the first and the last tokens of requests came, and the gaps between tokens, ns."""

    first: Int64s
    last: Int64s
    gaps: Int64s


class Replay(Struct, frozen=True):
    """Requests, the costs of a step, and the way to the engine.

    Attributes:
        requests, costs: Of a run.
        outside_ms: From sent until the scheduler sees a request.
    """

    requests: RequestColumns
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

    def predict(
        self, change: str, now: dict[str, int], then: dict[str, int], every: int = 1
    ) -> PredictedChange | None:
        """Replay the run as it was and under other limits; None where the first is not near to what
        was measured, or the second not to a replay with slightly longer steps.

        Args:
            change: What is changed, for readers.
            now, then: Limits of the scheduler: as they are, and changed.
            every: One in so many requests is replayed then: the others go to other replicas.
        """
        requests = self.requests
        streams = np.diff(requests.stream) == 0
        gaps = np.diff(requests.event)[streams]
        measured = self._summary(Times(requests.first, requests.last, gaps), 1)
        replayed = self._summary(self._run(now, 1), 1)
        errors = [abs(replayed[name] / measured[name] - 1) for name in JUDGED]
        if max(errors) > MOST_ERROR:
            return None
        changed = self._summary(self._run(then, every), every)
        slower = structs.replace(self, costs=self.costs.times(SLOWER))
        doubted = slower._summary(slower._run(then, every), every)
        if max(abs(doubted[name] / changed[name] - 1) for name in JUDGED) > MOST_ERROR:
            return None
        pairs = {
            name: BeforeAfter(now_ms=ms, then_ms=changed[name]) for name, ms in measured.items()
        }
        return PredictedChange(change=change, error=max(errors), **pairs)

    def _summary(self, times: "Times", every: int) -> dict[str, float]:
        ttfts = times.first - self.requests.sent[::every]
        p50, p99 = np.percentile(ttfts, [50, 99]).tolist()
        gap_p99 = float(np.percentile(times.gaps, 99)) if len(times.gaps) else 0.0
        return {
            "ttft_p50": p50 * MS,
            "ttft_p99": p99 * MS,
            "gap_p99": gap_p99 * MS,
            "e2el": float((times.last - self.requests.due[::every]).mean() * MS),
        }

    def _run(self, limits: dict[str, int], every: int) -> "Times":
        """Serve each n-th request under some limits."""
        costs = self.costs
        stream_ns = costs.stream_ms / MS
        engine = scheduler.Scheduler[scheduler.Sequence](
            scheduler.Limits(
                max_num_seqs=limits.get("max_num_seqs", UNLIMITED),
                max_num_batched_tokens=limits.get("max_num_batched_tokens", UNLIMITED),
                num_kv_tokens=UNLIMITED,
            ),
            scheduler.StepCosts(
                costs.base_ms / MS - stream_ns, costs.prompt_ms / MS, stream_ns, 0.0
            ),
        )
        requests = self.requests
        ready = requests.sent[::every] + int(self.outside_ms / MS)
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


def prediction(name: str, replay: Replay, arrivals: Arrivals) -> PredictedChange | None:
    """Predict what the advice on a cause would bring; None: that is not known.

    Args:
        name: The cause.
        replay: Of the run.
        arrivals: Of the run.
    """
    if not replay.is_possible:
        return None
    costs = replay.costs
    if name == "queue-slots":
        slots = arrivals.most_streams
        tried = (
            replay.predict(
                f"{many} slots for {slots}", {"max_num_seqs": slots}, {"max_num_seqs": many}
            )
            for many in (2 * slots, 4 * slots)
        )
        return next(filter(None, tried), None)
    if name == "prefill-others" and costs.knows_prompt:
        longest = int(replay.requests.prompt.max())
        step = 1 << max(6, round(np.log2(costs.base_ms / costs.prompt_ms)))
        limits = [max(factor * step, arrivals.most_streams) for factor in (1, 2, 4)]
        tried = (
            replay.predict(f"{limit} tokens a step", {}, {"max_num_batched_tokens": limit})
            for limit in limits
            if limit < longest
        )
        found = [predicted for predicted in tried if predicted is not None]
        good = (predicted for predicted in found if not predicted.is_bad)
        return next(good, found[0] if found else None)
    if name == "decode-batch":
        return replay.predict("two replicas for one", {}, {}, every=2)
    return None
