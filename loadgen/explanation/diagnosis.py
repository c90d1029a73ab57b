"""Diagnosis: how much of the time each cause has, and which of them are named."""

from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct

from loadgen.explanation.causes import CAUSES, advice
from loadgen.explanation.gaps import Gaps, Stall
from loadgen.explanation.parts import Parts
from loadgen.explanation.queue_kind import queue_kind
from loadgen.explanation.replay import Replay, prediction
from loadgen.explanation.request_columns import MS, RequestColumns
from loadgen.explanation.server_words import ServerWords
from loadgen.explanation.step_costs import MAX_TOGETHER, StepCosts
from loadgen.explanation.steps import Arrivals
from loadgen.report.result.explanation import NamedCause, PredictedChange
from loadgen.util.number_format import latency

MOST = 3  # causes that are named
LEAST_SHARE, LEAST_MS = 0.06, 8.0  # of the mean E2EL, that a cause of the mean costs
STEPS_SHARE = 0.12  # the same of prompts and streams of others, which every busy server has
TAIL_SHARE, TAIL_MS = 0.5, 20.0  # of what sets the slowest requests apart
STEPS_WAITED = 2.5  # longest waits for a running step, in steps with the longest usual prompt
LEAST_STALLS, STALLED = 5, 0.03  # long gaps, and as a share of the requests
LEAST_TIMES = 4  # at which they happened
OWN_SHARE = 0.5  # of what prompts of others cost, from which the own prompt is named first
USUAL_OUTSIDE_MS = 2.0
STEP_WAIT, OWN_STEP = 0.6, 1.6  # steps that a request waits, and has with its prompt, in any case
FIRST_SHARE = 0.4  # of the mean time to the first token, that a cause of it costs
BEFORE_FIRST = (
    *("front", "front-path", "front-server", "front-or-prompt", "network"),
    *("queue-slots", "queue-prefill"),
)
OF_STALLS = {
    Stall.CLIENT: "client-late",
    Stall.PATH: "path-stall",
    Stall.STREAM: "stream-stall",
    Stall.PROMPT: "prefill-others",
    Stall.STARVED: "kv",
    Stall.ENGINE: "engine-pause",
}
ROUND_TRIP = 0.5  # share of the time outside the engine that is one, from which it is the cause
INSTEAD = "add a replica: a replay of this run says that no limit would help"
OF_PARTS = {"engine_stall": Stall.ENGINE, "path_stall": Stall.PATH}


class Diagnosis(Struct, frozen=True):
    """What was found in a run.

    Attributes:
        requests, arrivals, gaps, parts, costs, words: Of the run; without times of tokens, there
            are no arrivals and no gaps.
        token_ms: The time of a token where the server is least disturbed.
        is_budget_small: Whether prompts take several steps that are hardly longer for it: their own
            time is a wait for room, too.
        budget: The prompt tokens of each step, if each is full of them.
        closed_loop: Whether requests were due when others had ended, so that they would have come
            sooner after a change: no replay says what it would bring.
    """

    requests: RequestColumns
    arrivals: Arrivals | None
    gaps: Gaps | None
    parts: Parts
    costs: StepCosts | None
    words: ServerWords
    token_ms: float
    is_budget_small: bool = False
    budget: float | None = None
    closed_loop: bool = False

    @property
    def step_ms(self) -> float:
        """A step without prompts."""
        return self.costs.base_ms if self.costs else self.token_ms

    @property
    def _first_ms(self) -> float:
        """The mean time from due to the first token."""
        return float(self.parts.total.mean()) * MS

    def named(self, *, is_explained: bool) -> list[NamedCause]:
        """Name the causes that stand out, at most MOST, the largest first.

        Args:
            is_explained: Whether nearly all of the time is in some part; else only what was counted
                is named.
        """
        queue, queue_evidence = queue_kind(
            self.requests, self.arrivals, self.gaps, self.words, self.budget
        )
        costs_ms = self._costs_ms(queue)
        found = [
            (name, ms, "mean")
            for name, ms in sorted(costs_ms.items(), key=_rank(costs_ms))
            if ms >= self._least_ms(name)
        ]
        stalled = not {name for name, _, _ in found}.isdisjoint(OF_STALLS.values())
        found += [(name, ms, "tail") for name, ms in self._of_tail(queue, stalled=stalled)]
        named: dict[str, NamedCause] = {}
        for name, ms, where in found:
            cause = CAUSES[name]
            if len(named) == MOST:
                break
            # The time to the first token is an account of its own, of which nothing is left over.
            of_first = name in BEFORE_FIRST and ms >= FIRST_SHARE * self._first_ms
            is_known = {
                "counts": True,
                "parts": is_explained or of_first,
                "steps": is_explained and self.costs is not None,
            }
            if name in named or not is_known[cause.rests_on]:
                continue
            predicted = self._predicted(name)
            is_bad = predicted is not None and predicted.is_bad
            named[name] = NamedCause(
                name=name,
                side=cause.side,
                ms=ms,
                where="mean" if where == "mean" else "tail",
                sentence=cause.sentence.format(ms=latency(ms)),
                evidence=queue_evidence if name == queue else self._evidence(name),
                advice=INSTEAD if is_bad else advice(cause, self.words.knobs),
                predicted=None if is_bad else predicted,
            )
        return list(named.values())

    def _least_ms(self, name: str) -> float:
        """What a cause of the mean costs at least."""
        e2el_ms = float(self.requests.e2el_ms.mean())
        if CAUSES[name].rests_on == "steps":
            return max(STEPS_SHARE * e2el_ms, LEAST_MS)
        least_ms = max(LEAST_SHARE * e2el_ms, LEAST_MS)
        if name in BEFORE_FIRST:
            return min(least_ms, max(FIRST_SHARE * self._first_ms, TAIL_MS))
        return least_ms

    def _predicted(self, name: str) -> PredictedChange | None:
        if self.closed_loop or self.arrivals is None:
            return None
        if self.costs is None or not self.costs.knows_base:
            return None
        outside_ms = float(np.percentile(self.parts.of("outside"), 50)) * MS
        return prediction(name, Replay(self.requests, self.arrivals, self.costs, outside_ms))

    def _costs_ms(self, queue: str) -> dict[str, float]:
        mean = self.parts.mean_ms()
        stalls = {name: self._stall_ms(kind) for kind, name in OF_STALLS.items()}
        batch_ms, prompts_ms = self._of_gaps()
        costs = {
            "client-cap": mean["cap"],
            "retries": mean["retries"],
            "client-late": mean["client"] + mean["read_late"] + stalls["client-late"],
            "connect": mean["connect"],
            self._front(): mean["outside"] - USUAL_OUTSIDE_MS - self._first_bundle_ms(),
            "prefill-own": mean["prompt"] - OWN_STEP * self.step_ms,
            "prefill-others": prompts_ms + stalls["prefill-others"],
            "decode-batch": batch_ms,
            "engine-pause": mean["engine_stall"] + stalls["engine-pause"],
            "path-stall": mean["path_stall"] + stalls["path-stall"],
            "stream-stall": stalls["stream-stall"],
            "kv": stalls["kv"],
            "bundling": self._bundling_ms(),
        }
        if self.is_budget_small:
            costs["queue-prefill"] = costs.pop("prefill-own")
        costs[queue] = costs.get(queue, 0.0) + mean["queue"] - STEP_WAIT * self.step_ms
        return costs

    def _of_tail(self, queue: str, *, stalled: bool) -> list[tuple[str, float]]:
        """What makes the slowest requests slow, where the mean does not show it; with stalls, a
        wait for the first token may be one of them.
        """
        found = self._of_stalls()
        stalled = stalled or bool(found)
        bands = self.parts.bands()
        (_, usual), (_, slowest) = bands["p50"], bands["p99"]
        whole_ms = sum(slowest.values()) - sum(usual.values())
        if whole_ms < max(TAIL_MS, TAIL_SHARE * sum(usual.values())):
            return found
        causes = {
            "cap": "client-cap",
            "retries": "retries",
            "client": "client-late",
            "read_late": "client-late",
            "connect": "connect",
            "outside": self._front(),
            "queue": queue,
            "prompt": "queue-prefill" if self.is_budget_small else "prefill-own",
            "engine_stall": "engine-pause",
            "path_stall": "path-stall",
        }
        for part, name in causes.items():
            more_ms = slowest[part] - usual[part]
            least_ms = max(TAIL_SHARE * whole_ms, TAIL_MS)
            if part in ("queue", "prompt"):
                least_ms = max(least_ms, self._step_wait_ms())
            is_chance = part in OF_PARTS and self._is_rare(OF_PARTS[part])
            may_be_stall = stalled and part in ("queue", "outside")
            if more_ms >= least_ms and not is_chance and not may_be_stall:
                found.append((name, more_ms))
        return found

    def _of_stalls(self) -> list[tuple[str, float]]:
        """The kind of stall that lasted longest, with its median; nothing where stalls are rare."""
        if self.gaps is None:
            return []
        lengths = {
            kind: self.gaps.length_ms[self.gaps.kind == kind]
            for kind in OF_STALLS
            if not self._is_rare(kind)
        }
        if not lengths:
            return []
        kind = max(lengths, key=lambda kind: float(lengths[kind].sum()))
        median_ms = float(np.median(lengths[kind]))
        matters = median_ms >= LEAST_SHARE * float(self.requests.e2el_ms.mean())
        return [(OF_STALLS[kind], median_ms)] if matters else []

    def _is_rare(self, kind: Stall) -> bool:
        """Whether stalls of a kind may be chance."""
        if self.gaps is None:
            return True
        least = max(LEAST_STALLS, STALLED * len(self.requests))
        return self.gaps.count(kind) < least or self.gaps.times(kind) < LEAST_TIMES

    def _step_wait_ms(self) -> float:
        """How long a request may wait for the steps that run anyway."""
        prompt_ms = self.costs.prompt_ms if self.costs else 0.0
        longest_ms = prompt_ms * float(np.percentile(self.requests.prompt, 95))
        return STEPS_WAITED * (self.step_ms + longest_ms)

    def _stall_ms(self, kind: Stall) -> float:
        if self.gaps is None:
            return 0.0
        return float(self.gaps.stall_ms[self.gaps.kind == kind].sum()) / len(self.requests)

    def _of_gaps(self) -> tuple[float, float]:
        """What other streams and prompts of others cost, ms a request."""
        if self.gaps is None:
            return 0.0, 0.0
        sums = float(self.gaps.batch_ms.sum()), float(self.gaps.prompt_ms.sum())
        return sums[0] / len(self.requests), sums[1] / len(self.requests)

    def _front(self) -> str:
        """On which side of the server's own TTFT the part outside of the engine is, whether one
        round trip is most of it, and whether it is told from the prompt.
        """
        outside_ms = self.parts.mean_ms()["outside"]
        if float(self.requests.round_trip.mean()) * MS > ROUND_TRIP * outside_ms:
            return "network"
        if not self.parts.tells_prompt:
            return "front-or-prompt"
        if self.words.ttft_ms is None:
            return "front"
        path_ms = float(self.requests.ttft_ms.mean()) - self.words.ttft_ms
        in_server_ms = outside_ms - path_ms
        if self.words.queue_ms is not None and self.words.prefill_ms is not None:
            in_server_ms = self.words.ttft_ms - self.words.queue_ms - self.words.prefill_ms
        return "front-path" if path_ms > in_server_ms else "front-server"

    def _first_bundle_ms(self) -> float:
        """How long the first token waits for those that come with it."""
        together = 1.0 if self.arrivals is None else self.arrivals.tokens_together
        return (together - 1) * self.token_ms if together >= MAX_TOGETHER else 0.0

    def _bundling_ms(self) -> float:
        """How long tokens waited for others of their arrival, ms a request."""
        arrivals = self.arrivals
        if arrivals is None or self.words.drafts > 0 or arrivals.tokens_together < MAX_TOGETHER:
            return 0.0
        after = arrivals.tokens[~arrivals.is_first]
        if (
            after >= 2 * MAX_TOGETHER - 1.1
        ).mean() <= 0.5:  # else stalls have brought them together
            return 0.0
        count = len(arrivals.at_ms) / len(self.requests)
        return (arrivals.tokens_together - 1) * self.token_ms * count / 2

    def _evidence(self, name: str) -> str:
        """Say what shows a cause."""
        for kind, cause in OF_STALLS.items():
            if cause == name and self.gaps is not None and (count := self.gaps.count(kind)):
                lengths = self.gaps.length_ms[self.gaps.kind == kind]
                streams = len(np.unique(self.gaps.stream[self.gaps.kind == kind]))
                return (
                    f"{count} gaps of {latency(float(np.median(lengths)))} at the median, in "
                    f"{streams} of {len(self.requests)} requests{self._beside(kind)}"
                )
        if name == "decode-batch" and self.costs is not None and self.arrivals is not None:
            return f"{1e3 * self.costs.stream_ms:.0f} us a step for each stream"
        if name == "prefill-others" and self.costs is not None:
            return f"{1e3 * self.costs.prompt_ms:.1f} us for each prompt token"
        if name == "bundling" and self.arrivals is not None:
            where = (
                "of one event"
                if float(self.requests.event_tokens.mean()) >= MAX_TOGETHER
                else "of several events"
            )
            return f"{self.arrivals.tokens_together:.1f} tokens at a time, {where}"
        part = {
            "client-cap": "cap",
            "retries": "retries",
            "client-late": "client",
            "connect": "connect",
            "prefill-own": "prompt",
        }.get(name, "outside")
        values = self.parts.of(part) * MS
        if name == "client-late":
            values = values + self.parts.of("read_late") * MS
        p50, p99 = (latency(float(ms)) for ms in np.percentile(values, [50, 99]))
        return f"{p50} at the median of the requests, {p99} at p99{self._of_opening(name)}"

    def _of_opening(self, name: str) -> str:
        """Say which part of opening connections took longest, where it is known."""
        if name != "connect":
            return ""
        parts = {what: getattr(self.requests, what.lower()).sum() for what in ("DNS", "TCP", "TLS")}
        longest = max(parts, key=lambda what: int(parts[what]))
        share = parts[longest] / max(1, int(self.requests.connect.sum()))
        return f"; {share:.0%} of it was {longest}" if parts[longest] else ""

    def _beside(self, kind: Stall) -> str:
        """Say what else speaks for a kind of stall."""
        if kind is Stall.STREAM and self.gaps is not None:
            stalled = np.unique(self.gaps.stream[self.gaps.kind == kind])
            reordered = int((self.requests.lost[stalled] > 0).sum())
            if reordered:
                return f"; packets of {reordered} of them were lost or came out of order"
        if kind is Stall.CLIENT:
            return "; their tokens may have come before they were read"
        return ""

    def after_first_ms(self) -> Mapping[str, float]:
        """What the time after the first token was, ms a request."""
        if self.gaps is None:
            return {}
        batch_ms, prompts_ms = self._of_gaps()
        count = len(self.requests)
        return {
            "model": float(self.gaps.own_ms.sum()) / count,
            "streams": batch_ms,
            "prompts": prompts_ms,
            **{kind.name.lower() + "_stall": self._stall_ms(kind) for kind in OF_STALLS},
            "other": float(self.gaps.other_ms.sum()) / count,
        }


def _rank(costs_ms: Mapping[str, float]) -> Callable[[tuple[str, float]], float]:
    """Order causes by their time; where prompts are dear, they are so for their own requests
    first.
    """
    others_ms = costs_ms["prefill-others"]

    def rank(item: tuple[str, float]) -> float:
        name, ms = item
        if name == "prefill-own" and OWN_SHARE * others_ms <= ms <= others_ms:
            return -others_ms - 1
        return -ms

    return rank
