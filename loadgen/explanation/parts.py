"""Parts: where the time until each request's first token went; and the fastest TTFTs by the length
of the prompt.
"""

import numpy as np
from msgspec import Struct

from loadgen.explanation.gaps import READ_LATE, Gaps, Stall
from loadgen.explanation.request_columns import MS, RequestColumns
from loadgen.explanation.steps import Arrivals
from loadgen.report.result.explanation import PartKind
from loadgen.util.arrays import Bools, Floats, Int64s

NAMES = (
    *("cap", "retries", "connect", "client"),
    *("outside", "queue", "prompt", "engine_stall", "path_stall", "read_late"),
)
EXACT = NAMES[:4]  # the others split the time from sent, which is exact as a whole
BANDS = {"p10": (0, 20), "p50": (40, 60), "p90": (85, 95), "p99": (98, 100)}
FASTEST = 0.05  # share of the requests whose TTFT is below the slope of the fastest
FIRST = 0.01  # share of the requests that are faster than what every request has
SLOPES = 121
MOST_POINTS = 5000
MOST_WRONG = 0.05  # share of the requests of which a server may say more than there was
LEAST_LATE_NS = 5_000_000  # by which a first token was read late
LEAST_PROMPT = 0.05  # of the time of a token, that prompts take
ROUNDING_NS = 1_000_000  # to which a server may round its times
BY_SERVER = ("outside", "queue", "prompt")  # outside: what remains of the time from sent
MOST_SAID = 0.5  # share of the requests, from which a part is by the server
RARE = 0.25  # share of the run that stalls may last so that waits in them are told apart


class Line(Struct, frozen=True):
    """The TTFT of the fastest requests: start + slope x prompt tokens, ms.

    Attributes:
        start_ms, slope_ms: The line.
        is_known: Whether a quarter of the requests lie near it; else they waited so much that its
            slope is that of chance, and 0 here.
        tells_prompt: Whether its slope is what a prompt token takes; else the start has that, too.
    """

    start_ms: float
    slope_ms: float
    is_known: bool
    tells_prompt: bool = False

    @classmethod
    def of(cls, prompt: Floats, ttft_ms: Floats) -> "Line":
        """Find the line below which a share FASTEST of the requests lies (regression of a
        quantile).
        """
        chosen = np.linspace(0, len(prompt) - 1, min(len(prompt), MOST_POINTS)).astype(int)
        x, y = prompt[chosen], ttft_ms[chosen]
        if len(x) < 8 or np.ptp(x) < 1:
            return cls(_start(y, is_known=False), 0.0, is_known=False, tells_prompt=False)
        best = (np.inf, 0.0)
        for slope in np.linspace(0, 1.5 * float(np.median(y / np.maximum(x, 1))), SLOPES):
            rest = y - slope * x
            start = float(np.percentile(rest, 100 * FASTEST))
            above = rest - start
            loss = float(np.where(above > 0, FASTEST * above, (FASTEST - 1) * above).mean())
            if start >= 0 and loss < best[0] - 1e-12:
                best = (loss, float(slope))
        slope = best[1]
        above = y - slope * x - _start(y - slope * x, is_known=False)
        is_known = bool(np.percentile(above, 25) <= np.median(y - above))
        slope = slope if is_known else 0.0
        return cls(_start(ttft_ms - slope * prompt, is_known=is_known), slope, is_known, is_known)

    def with_slope(self, slope_ms: float, prompt: Floats, ttft_ms: Floats) -> "Line":
        """Return the line of another slope."""
        start_ms = _start(ttft_ms - slope_ms * prompt, is_known=self.is_known)
        return Line(start_ms, slope_ms, self.is_known, tells_prompt=True)


def _start(rest_ms: Floats, *, is_known: bool) -> float:
    """What every request takes, beside its prompt: the fewest wait for nothing where most wait, and
    the noise of steps decides the very fastest where few do.
    """
    share = FASTEST if is_known else FIRST
    return float(np.percentile(rest_ms, 100 * share, method="lower"))


class Parts(Struct, frozen=True):
    """The parts of the time from due to the first token; whole ns, which add up to it.

    Attributes:
        ns: A row for each of NAMES, a column for each request.
        tells_prompt: Whether the prompt's own time is told from what is outside.
        said_by_server: The share of the requests whose queue and prompt the server has said.
    """

    ns: Int64s
    tells_prompt: bool = True
    said_by_server: float = 0.0

    @classmethod
    def by_stamps(cls, requests: RequestColumns, line: Line, token_ms: float) -> "Parts":
        """Split by the stamps alone: what the fastest requests take does not depend on others, so
        that what is above is a wait.

        Args:
            requests: The requests.
            line: Of the fastest.
            token_ms: The time of a token where the server is least disturbed.
        """
        from_sent = requests.first - requests.sent
        prompt_ms = line.slope_ms * requests.prompt + token_ms
        prompt = np.minimum((prompt_ms / MS).astype(np.int64), from_sent)
        start = int(max(0.0, line.start_ms - token_ms) / MS)
        # The way is at least a round trip, which TCP has measured.
        outside = np.clip(np.maximum(start, requests.round_trip), 0, from_sent - prompt)
        nothing = np.zeros(len(requests), dtype=np.int64)
        rows = (
            requests.ready - requests.due,
            requests.retried,
            requests.connect,
            requests.sent - requests.ready - requests.retried - requests.connect,
            outside,
            from_sent - prompt - outside,
            prompt,
            nothing,
            nothing,
            nothing,
        )
        return cls(np.stack(rows), line.tells_prompt)

    def with_server_times(self, requests: RequestColumns, token_ms: float) -> "Parts":
        """Take the server's word for its queue and its prompt, of the requests of which it says
        both; what remains of the time from sent was outside.

        Where it says more than there was, it is not believed; in no request, if that is so in more
        than MOST_WRONG of them. Nor where prompts took no time beside a token: its times are in
        another unit.

        Args:
            requests: The requests.
            token_ms: The time of a token where the server is least disturbed.
        """
        said = (requests.queue >= 0) & (requests.prefill >= 0)
        more = self._says_more(requests)
        if not said.any() or more.sum() > MOST_WRONG * said.sum():
            return self
        if np.median(requests.prefill[said]) * MS < LEAST_PROMPT * token_ms:
            return self
        said &= ~more
        ns = self.ns.copy()
        queue, prompt = (NAMES.index(name) for name in ("queue", "prompt"))
        from_sent = requests.first - requests.sent
        for row, words in ((queue, requests.queue), (prompt, requests.prefill)):
            ns[row, said] = np.minimum(words, from_sent)[said]
            from_sent = from_sent - ns[row]
        ns[NAMES.index("outside"), said] = from_sent[said]
        said_by_server = float(said.mean())
        tells_prompt = self.tells_prompt or said_by_server > MOST_SAID
        return Parts(ns, tells_prompt, said_by_server)

    @classmethod
    def contradicted(cls, requests: RequestColumns) -> int:
        """The number of requests of which the server says more time than there was."""
        return int(cls._says_more(requests).sum())

    @staticmethod
    def _says_more(requests: RequestColumns) -> Bools:
        said = (requests.queue >= 0) & (requests.prefill >= 0)
        excess = requests.queue + requests.prefill - (requests.first - requests.sent)
        more: Bools = said & (excess > ROUNDING_NS)
        return more

    def without_late_reads(self, requests: RequestColumns) -> "Parts":
        """Take the time by which first tokens may have come before they were read out of the part
        that has it: what is not the engine's own word, if that time is most of it.
        """
        if not requests.has_events:
            return self
        late = requests.first - requests.earliest[requests.begin[:-1]]
        ns = self.ns.copy()
        row = ns[NAMES.index("outside" if self.said_by_server > MOST_SAID else "queue")]
        is_late = (late >= np.maximum(READ_LATE * row, LEAST_LATE_NS)) & (requests.lost == 0)
        ns[NAMES.index("read_late")] = taken = np.where(is_late, np.minimum(late, row), 0)
        row -= taken
        return Parts(ns, self.tells_prompt, self.said_by_server)

    def without_stalls(self, gaps: Gaps, requests: RequestColumns, arrivals: Arrivals) -> "Parts":
        """Take the stalls of the engine and of the way out of the parts in which they lie, unless
        they last most of the run.
        """
        ns = self.ns.copy()
        sent_ms = arrivals.first_ms - requests.ttft_ms
        run_ms = float(arrivals.last_ms.max() - sent_ms.min())
        for kind, name, first in (
            (Stall.ENGINE, "engine_stall", "queue"),
            (Stall.PATH, "path_stall", "outside"),
        ):
            whole_ms = gaps.covered_ms(kind, np.array([-1e15]), np.array([1e15]))[0]
            if not 0 < whole_ms < RARE * run_ms:
                continue
            rest = (gaps.covered_ms(kind, sent_ms, arrivals.first_ms) / MS).astype(np.int64)
            for part in dict.fromkeys((first, "queue", "prompt", "outside")):
                row = ns[NAMES.index(part)]
                least = requests.round_trip if part == "outside" else 0
                taken = np.minimum(rest, np.maximum(row - least, 0))
                row -= taken
                rest = rest - taken
                ns[NAMES.index(name)] += taken
        return Parts(ns, self.tells_prompt, self.said_by_server)

    def of(self, name: str) -> Int64s:
        """One of the parts, ns, shape (n,)."""
        part: Int64s = self.ns[NAMES.index(name)]
        return part

    @property
    def total(self) -> Int64s:
        """The time from due to the first token of each request, ns."""
        total: Int64s = self.ns.sum(axis=0)
        return total

    def kinds(self) -> dict[str, PartKind]:
        """How each part is known."""
        words: PartKind = "server" if self.said_by_server > MOST_SAID else "estimate"
        kinds: dict[str, PartKind] = dict.fromkeys(NAMES, "estimate")
        kinds |= dict.fromkeys(EXACT, "exact")
        kinds |= dict.fromkeys(BY_SERVER, words)
        return kinds if self.tells_prompt else kinds | {"outside": "at most"}

    def mean_ms(self) -> dict[str, float]:
        """The mean of each part, ms."""
        return dict(zip(NAMES, (self.ns.mean(axis=1) * MS).tolist(), strict=True))

    def bands(self) -> dict[str, tuple[int, dict[str, float]]]:
        """The requests from fast to slow: of each band their number, and the mean of each part,
        ms.
        """
        order = np.argsort(self.total, kind="stable")
        bands = {}
        for name, (low, high) in BANDS.items():
            first = len(order) * low // 100
            chosen = order[first : max(first + 1, round(len(order) * high / 100))]
            bands[name] = len(chosen), Parts(self.ns[:, chosen]).mean_ms()
        return bands
