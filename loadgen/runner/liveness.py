"""Liveness: asks a server that has fallen silent, and finds whether it hangs.

If no stream has had a token for the limit of `liveness_timeout`, loadgen asks each server for its
health and for one token, and watches as long again for signs of progress. The server hangs if no
token comes, no sign moves, and its health fails or its processes were seen to stand still. A
server of which nothing but good health can be seen is left to the limits of its streams.
"""

import asyncio
import logging
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import orjson
from msgspec import Struct
from msgspec.structs import replace

from loadgen.config.settings import RunSettings
from loadgen.engines.launch.processes import family, family_cpu_s
from loadgen.errors import Unreachable
from loadgen.features.liveness import ServerSilence
from loadgen.metrics.progress import ON_THE_CLOCK, Progress
from loadgen.runner.preflight import short_body
from loadgen.util import http_client
from loadgen.util.files import TailReader
from loadgen.workload import target
from loadgen.workload.target import Target, request_targets

BUSY_CORES = 0.05  # an idle server that answers scrapes takes less; others may take most cores
ACCESS = re.compile(rb'"[A-Z]+ /\S* HTTP/')  # a line about a request, such as loadgen's own
PREFIX = re.compile(rb"^.*?\d\d:\d\d:\d\d[.,\d]*")  # the time of a line

logger = logging.getLogger("loadgen")


class Sign(Protocol):
    """Something that moves while a server computes.

    Attributes:
        name: As in "its metrics moved".
        lasts_s: How long a silence may be that it explains alone, s.
    """

    name: str
    lasts_s: float

    def moved(self, elapsed_s: float) -> bool:
        """Return whether it has moved since the last call.

        Args:
            elapsed_s: Now, s on the clock.
        """


class MetricsSign:
    """Metrics of the servers, without how many requests they have: loadgen's own is one of them.

    Args:
        counts: Returns the latest of them.
    """

    name = "metrics"
    lasts_s = math.inf

    def __init__(self, counts: Callable[[], Mapping[Any, float]]) -> None:
        self._counts = counts
        self._before: Mapping[Any, float] = {}

    def moved(self, elapsed_s: float) -> bool:
        """As `Sign.moved`."""
        before, self._before = self._before, dict(self._counts())
        return before != self._before


class CpuSign:
    """CPU time of the processes that serve on this machine.

    A server may also wait for ever in a busy loop, so this explains no silence that is longer than
    a first token may take.

    Args:
        pids: The processes; their children count too.
        lasts_s: As in `Sign`.
    """

    name = "CPU"

    def __init__(self, pids: Sequence[int], lasts_s: float) -> None:
        self._pids = pids
        self.lasts_s = lasts_s
        self._before = (0.0, 0.0)

    def moved(self, elapsed_s: float) -> bool:
        """As `Sign.moved`."""
        (before_s, since_s), cpu_s = self._before, family_cpu_s(family(tuple(self._pids)))
        self._before = (cpu_s, elapsed_s)
        return cpu_s - before_s > BUSY_CORES * (elapsed_s - since_s)


class LogSign:
    """The log of an engine: new lines, without those about requests, and those that say again what
    one has said.

    Args:
        file: Reads its new lines.
    """

    name = "log"
    lasts_s = math.inf

    def __init__(self, file: TailReader) -> None:
        self._file = file
        self._said = set[bytes]()

    def moved(self, elapsed_s: float) -> bool:
        """As `Sign.moved`."""
        lines = {
            PREFIX.sub(b"", line) for line in self._file.lines() if not ACCESS.search(line)
        } - {b""}
        new = lines - self._said
        self._said |= new
        return bool(new)


class Answer(Struct, frozen=True):
    """What servers say that were asked.

    Attributes:
        health: Why the health of all of them is bad; empty: that of one is good.
        token: Why none of them answers a request; empty: one does.
        requests: How many requests were sent for a token.
    """

    health: str
    token: str
    requests: int = 0


class ServerQuestions:
    """Asks the servers of a run for their health, and each for one token.

    Args:
        settings: The settings of the run, as resolved.
        model: The model's name in requests.
        engines: The servers that were started for the run.
    """

    def __init__(self, settings: RunSettings, model: str, engines: Sequence[Any] = ()) -> None:
        self._settings = settings
        self._model = model
        self._engines = engines

    async def ask(self, limit_s: float) -> Answer:
        """Ask all of them at once.

        Args:
            limit_s: For each answer, s.
        """
        targets = request_targets(self._settings, self._model)
        healths = (
            [asyncio.to_thread(self._engine_problem, engine, limit_s) for engine in self._engines]
            if self._engines
            else [self._problem(alone, limit_s) for alone in self._settings.apart()]
        )
        bodies = [(each, orjson.dumps(body)) for each in targets if (body := short_body(each))]
        tokens = [self._token_problem(each, body, limit_s) for each, body in bodies]
        answers = await asyncio.gather(*healths, *tokens)
        return Answer(
            _first_unless_one_is_well(answers[: len(healths)]),
            _first_unless_one_is_well(
                answers[len(healths) :] or ["its API takes no short request"]
            ),
            len(tokens),
        )

    @property
    def complaint(self) -> str:
        """What the logs of the engines complain of, as the end of a message."""
        return "".join(engine.log_complaint for engine in self._engines)

    def _engine_problem(self, engine: Any, limit_s: float) -> str:
        trouble = engine.trouble(limit_s)
        return f"{trouble.crash.kind}: {trouble.crash.cause}" if trouble else ""

    async def _problem(self, alone: RunSettings, limit_s: float) -> str:
        """Say why a server does not list its models; empty if it does, or has no list."""
        url = target.models_url(alone)
        if url is None:
            return ""
        headers = target.headers_of_get(alone, url)
        try:
            reply = await http_client.get(
                url, headers=headers, route=target.route(alone), timeout_s=limit_s
            )
        except Unreachable as error:
            return str(error)
        return f"{url} answers {reply.status}" if reply.status >= 500 else ""

    async def _token_problem(self, each: Target, body: bytes, limit_s: float) -> str:
        headers = each.headers | each.signature(body)
        try:
            reply = await http_client.send_json(
                each.url, body, headers=headers, route=each.route, timeout_s=limit_s
            )
        except Unreachable as error:
            return str(error)
        return "" if 200 <= reply.status < 300 else f"{each.url} answers {reply.status}"


class Liveness:
    """Watches the progress of a run for silences.

    Args:
        limit_s: Silence after which the servers are asked, s; 0: never.
        ask: Asks them, with the limit for an answer in s.
        signs: What can be seen of them.
        sees_processes: Whether the signs include the processes of the servers.
        complaint: Returns what the servers' logs complain of, as the end of a message.

    Attributes:
        silences: Those that are over, and the one that ended the run.
    """

    def __init__(
        self,
        limit_s: float,
        ask: Callable[[float], Awaitable[Answer]],
        signs: Sequence[Sign] = (),
        *,
        sees_processes: bool = False,
        complaint: Callable[[], str] = str,
    ) -> None:
        self.silences: list[ServerSilence] = []
        self._limit_s = limit_s
        self._ask = ask
        self._signs = signs
        self._sees_processes = sees_processes
        self._complaint = complaint
        self._last = (0, 0)  # tokens and ends of requests
        self._last_s = 0.0
        self._silence: ServerSilence | None = None
        self._asking: asyncio.Future[Answer] | None = None
        self._judged_at_s = 0.0

    def add(self, progress: Progress) -> str | None:
        """Take the progress of the run.

        Returns:
            Why the run ends: the server hangs. None: it goes on.
        """
        if not self._limit_s or progress.phase not in ON_THE_CLOCK or self._is_hung:
            return None
        now_s = progress.elapsed_s
        seen = (progress.streamed_tokens, progress.ended)
        silent_s = min(now_s - self._last_s, progress.oldest_s)
        if seen != self._last or silent_s < self._limit_s:
            if seen != self._last:
                self._last, self._last_s = seen, now_s
            self.close(now_s)
            return None
        if self._silence is None:
            logger.warning("no token on any stream for %.0f s: asking the server", silent_s)
            self._silence = ServerSilence(since_s=now_s - silent_s, for_s=silent_s)
            self._watch(now_s)
        self._silence = replace(self._silence, for_s=silent_s)
        return self._judge(now_s)

    def close(self, now_s: float) -> None:
        """End the silence, if there is one, at a time on the clock in s: a token came, or the run
        is over.
        """
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None
        if self._silence is not None and not self._is_hung:
            since_s = self._silence.since_s
            self.silences.append(replace(self._silence, for_s=max(0.0, now_s - since_s)))
            self._silence = None

    @property
    def _is_hung(self) -> bool:
        return bool(self.silences) and self.silences[-1].hung

    def _watch(self, now_s: float) -> None:
        """Ask, and look at the signs from now on."""
        assert self._silence is not None
        self._asking = asyncio.ensure_future(self._ask(self._limit_s))
        self._judged_at_s = now_s + self._limit_s
        for sign in self._signs:
            sign.moved(now_s)

    def _judge(self, now_s: float) -> str | None:
        silence = self._silence
        assert silence is not None
        assert self._asking is not None
        if not self._asking.done() or now_s < self._judged_at_s:
            return None
        answer = self._asking.result()
        moved = [sign for sign in self._signs if sign.moved(now_s)]
        believed = [sign.name for sign in moved if silence.for_s < sign.lasts_s]
        is_dead = bool(answer.token) and not believed
        hung = is_dead and bool(answer.health or self._sees_processes)
        if not answer.token:
            found = "it answered a request of loadgen's own"
        elif believed:
            found = f"its {' and '.join(believed)} moved"
        elif hung:
            still = [sign.name for sign in self._signs if sign not in moved]
            found = f"it does not answer loadgen's own request ({answer.token})"
            found += f"; health: {answer.health}" if answer.health else ""
            found += f"; its {', '.join(still)} stood still" if still else ""
            found += self._complaint()
        else:
            found = "its health was good, and nothing else of it could be seen"
        self._silence = replace(
            silence, found=found, hung=hung, requests=silence.requests + answer.requests
        )
        if not hung:
            self._watch(now_s)
            return None
        self.silences.append(self._silence)
        return f"the server hangs: no token on any stream for {silence.for_s:.0f} s; {found}"


def _first_unless_one_is_well(problems: Sequence[str]) -> str:
    """Return the first problem; empty if one of them is."""
    return problems[0] if all(problems) else ""


def watch_liveness(
    settings: RunSettings,
    model: str,
    *,
    engines: Sequence[Any],
    pids: Sequence[int],
    counts: Callable[[], Mapping[Any, float]] | None,
) -> Liveness:
    """Return what watches a run.

    Args:
        settings: The settings of the run, as resolved.
        model: The model's name in requests.
        engines: The servers that were started for the run.
        pids: The processes on this machine that serve.
        counts: Returns the latest metrics of the servers; None: they have none.
    """
    questions = ServerQuestions(settings, model, engines)
    signs: list[Sign] = [] if counts is None else [MetricsSign(counts)]
    signs += [LogSign(TailReader(engine.log.path)) for engine in engines]
    if pids:
        signs.append(CpuSign(pids, settings.first_token_timeout or math.inf))
    return Liveness(
        settings.liveness_timeout,
        questions.ask,
        signs,
        sees_processes=bool(pids),
        complaint=lambda: questions.complaint,
    )
