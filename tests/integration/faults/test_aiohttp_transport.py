"""The plain transport: what it tells of answers is what the compiled one tells, with times of
reading; and it reads what that one does not.
"""

import asyncio
import gzip
import math
import ssl
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import trustme
from numpy.typing import NDArray

import loadgen
from loadgen import report
from loadgen.client.aiohttp_transport import StampedProtocol
from loadgen.client.timeouts import Timeouts
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.engines.sim.http1 import LAST_CHUNK, Request, whole
from loadgen.features import capture
from loadgen.features.capture import End
from loadgen.metrics.records.file import RecordFile
from loadgen.runner.run import run
from loadgen.runner.workers import open_workers
from loadgen.testing.faulty import Faulty, serving
from loadgen.testing.process import Process
from loadgen.testing.replies import HEAD, answer, chunked, models, streamed
from loadgen.testing.truth import Truth
from tests.helpers.command_line import TOKENIZER
from tests.helpers.fault_requests import (
    UNVERIFIED,
    AiohttpTransport,
    Sender,
    assert_good,
    neighbours,
    until,
)
from tests.helpers.scripted_server import answering, chatting, read_request
from tests.helpers.scripted_server import serving as scripted
from tests.helpers.timed_server import timed_server
from tests.integration.faults.test_faults import (
    COMPRESSED,
    ENDLESS_GZIP,
    FAILURES,
    LIMIT,
    ODDITIES,
    SILENCES,
    STATUSES,
)
from tests.integration.faults.test_user_stamps import GAP_S
from tests.integration.faults.test_user_stamps import measured as stalled

Float64s = NDArray[np.float64]

MS = 1_000_000
ENDLESS_HEAD = "endless-chunk-size"  # aiohttp reads on and on, until a timeout
ENCODED = HEAD + b"Content-Encoding: %b\r\n%b\r\n"
FLOOR_NS = 50_000  # between the clock that the server reads and the kernel's stamp
REQUESTS, LENGTH = 40, 20
MAX_APART_MS, COVERED = 1.0, 0.99
EQUAL = (
    *("index", "outcome", "status", "events", "counted", "finish_reason"),
    *("prompt_tokens", "completion_tokens"),
)
USER = "Basic bWU6c2VAY3JldA=="  # me:se@cret
RUN = loadgen.RunSettings(
    backend="openai-chat",
    tokenizer=TOKENIZER,
    random_input_len=16,
    random_output_len=6,
    request_rate=100.0,
    seed=3,
)


def plain(url: str, timeouts: Timeouts | None = None, **options: Any) -> Sender:
    """A sender over the plain transport."""
    return Sender(url, timeouts, transport=AiohttpTransport, **options)


# -- the same outcomes


@pytest.mark.parametrize(
    ("fault", "outcome", "events"),
    [(row[0], row[1], row[2]) for row in FAILURES if row[0] != ENDLESS_HEAD]
    + [(fault, Outcome.STATUS, 0) for fault in STATUSES]
    + [(row[0], Outcome.OK, row[1]) for row in ODDITIES]
    + [(row[0], row[1], row[2]) for row in COMPRESSED],
)
async def test_each_fault_has_its_outcome(
    faulty: Faulty, fault: str, outcome: Outcome, events: int
) -> None:
    async with plain(faulty.url) as sender:
        record = await sender.one(fault)
        assert (record.outcome, record.events) == (outcome, events)
        assert record.detail or outcome in (Outcome.OK, Outcome.STATUS)
        assert "\n" not in (record.detail or "")
        assert record.ordered
        assert record.user_stamped == record.events
    assert faulty.requests == sender.sent


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "timeouts", "outcome", "events"), [*SILENCES, ENDLESS_GZIP])
async def test_silence_ends_with_the_limit_that_it_passed(
    faulty: Faulty, fault: str, timeouts: Timeouts, outcome: Outcome, events: int
) -> None:
    async with plain(faulty.url, timeouts) as sender:
        record = await sender.one(fault)
        assert (record.outcome, record.events) == (outcome, events)
        assert record.closed - record.sent >= LIMIT


@pytest.mark.parametrize("fault", ["rst:2", "bad-chunk", "close", "status:503", "cut-gzip"])
async def test_others_are_unaffected(faulty: Faulty, fault: str) -> None:
    async with plain(faulty.url) as sender, neighbours(sender):
        await sender.one(fault)


@pytest.mark.parametrize("fault", ["endless", "endless-gzip", "silence"])
async def test_a_user_leaves(faulty: Faulty, fault: str) -> None:
    async with plain(faulty.url) as sender:
        sender.leave = (100, -1) if fault == "endless" else (0, 20 * MS)
        record = await sender.one(fault)
        assert record.outcome is Outcome.DISCONNECTED
        assert record.events >= 100 or fault != "endless"
        await until(lambda: faulty.open == 0)


@pytest.mark.parametrize("connected", [False, True])
async def test_requests_are_cancelled(faulty: Faulty, connected: bool) -> None:
    async with plain(faulty.url) as sender:
        waiting = sender.start(3, "silence")
        await until(lambda: not connected or len(sender.transport.active) == 3)
        sender.transport.abandon(Outcome.CANCELLED, "enough")
        records = [await each for each in waiting]
        told = [(record.outcome, record.detail) for record in records]
        assert told == [(Outcome.CANCELLED, "enough")] * 3


async def test_an_answer_does_not_wait_for_the_end_of_its_response() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(streamed(answer("a", "b")).removesuffix(LAST_CHUNK))
        await reader.read()

    async with scripted(script) as url, plain(url) as sender:
        record = await sender.one()
        assert (record.outcome, record.events) == (Outcome.OK, 2)


# -- connections


@pytest.mark.parametrize(
    ("url", "outcome"),
    [("http://127.0.0.1:9", Outcome.REFUSED), ("http://no.invalid", Outcome.DNS_ERROR)],
)
async def test_a_server_that_is_not_reached(url: str, outcome: Outcome) -> None:
    async with plain(url) as sender:
        record = await sender.one()
        assert (record.outcome, record.sent) == (outcome, 0)
        assert await sender.transport.warm(2) == 0
        assert bool(sender.transport.reachability(0).why) is (outcome is Outcome.REFUSED)


async def test_tls_is_trusted_as_the_route_says() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    async with serving(tls=context) as faulty:
        async with plain(faulty.url) as sender:
            assert (await sender.one()).outcome is Outcome.TLS_ERROR
        async with plain(faulty.url, route=UNVERIFIED) as sender:
            for fault in (None, "gzip", "until-close", "byte-by-byte"):
                assert_good(await sender.one(fault))


async def test_a_connection_is_used_again_once_it_has_rested(faulty: Faulty) -> None:
    async with plain(faulty.url) as sender:
        assert await sender.transport.warm(2) == 2
        records = [await sender.one(), await sender.one()]
        assert [(record.reused, record.connect_ns) for record in records] == [(False, 0)] * 2
        await asyncio.sleep(0.1)
        assert not sender.transport.reuses
        assert (await sender.one()).reused
        assert faulty.connections == 2
        assert sender.transport.reuses


# -- times


async def measured(
    server: Process, folder: Path, transport: str
) -> tuple[loadgen.Result, list[Record], Truth]:
    """Measure a load over a transport."""
    Truth.forget(server.url)
    settings = loadgen.RunSettings(
        base_url=server.url,
        transport=transport,
        preflight=False,
        backend="openai-chat",
        tokenizer=TOKENIZER,
        random_input_len=16,
        random_output_len=LENGTH,
        request_rate=100.0,
        num_prompts=REQUESTS,
        extra_body={"metronome": {"first_ms": 5.0, "gap_ms": 5.0}},
        records=str(folder / transport),
    )
    result = await loadgen.run(settings)
    return result, list(RecordFile(folder / transport)), Truth.fetch(server.url)


def added_ms(records: list[Record], truth: Truth) -> tuple[Float64s, float]:
    """What the client and the way to it add to the median TTFT, TPOT and E2EL, ms: from sent, and
    from when the server had read a request and wrote its tokens.

    Also the share of tokens that lie within their bounds; few of those that were read may have
    waited longer than the loop probe has seen.
    """
    places = {number: place for place, number in enumerate(truth.number.tolist())}
    told, true, is_covered = [], [], list[bool]()
    for record in records:
        place = places[record.index]
        of = slice(truth.starts[place], truth.starts[place + 1])
        stamps_ns, write_ns = np.array(record.stamps), truth.write_ns[of]
        assert np.all(write_ns <= stamps_ns)
        earliest_ns = np.array(record.earliest or record.stamps)
        is_covered += (earliest_ns <= truth.written_ns[of] + FLOOR_NS).tolist()
        for found, since_ns, at_ns in (
            (told, record.sent, stamps_ns),
            (true, truth.arrival_ns[place], write_ns),
        ):
            span_ns = at_ns[-1] - at_ns[0]
            found.append((at_ns[0] - since_ns, span_ns / (LENGTH - 1), at_ns[-1] - since_ns))
    medians: Float64s = (np.median(told, axis=0) - np.median(true, axis=0)) / MS
    return medians, float(np.mean(is_covered))


async def test_both_transports_agree_where_the_truth_is_known(
    metronome: Process, tmp_path: Path
) -> None:
    """Counts, tokens and outcomes are equal, the tokens lie within their bounds, and the median
    TTFT, TPOT and E2EL, less the server's own, are at most a millisecond apart; at a sixth attempt
    where others keep the machine busy.
    """
    for left in range(5, -1, -1):
        runs = [await measured(metronome, tmp_path, name) for name in ("compiled", "aiohttp")]
        told = [
            [
                tuple(getattr(record, name) for name in EQUAL)
                for record in sorted(records, key=lambda record: record.index)
            ]
            for _, records, _ in runs
        ]
        assert told[0] == told[1]
        assert {row[1] for row in told[0]} == {Outcome.OK}
        compiled, plain = (result for result, _, _ in runs)
        assert compiled.tokens.user_stamped_events == 0
        assert plain.tokens.user_stamped_events == plain.tokens.token_events == REQUESTS * LENGTH
        assert plain.tokens.unbounded_events == 0
        (of_compiled, covered), (of_plain, plain_covered) = (
            added_ms(records, truth) for _, records, truth in runs
        )
        is_near = np.max(np.abs(of_plain - of_compiled)) <= MAX_APART_MS
        if is_near and min(covered, plain_covered) >= COVERED:
            break
        assert left, (of_compiled, of_plain, covered, plain_covered)


def test_the_report_says_which_transport_it_was(metronome: Process, tmp_path: Path) -> None:
    result, _, _ = asyncio.run(measured(metronome, tmp_path, "aiohttp"))
    text = " ".join(report.render(result).split())
    assert "Transport: aiohttp, so times are those of reading" in text
    assert "Arrival times: 0.0% of the tokens stamped by the kernel, 0.0% exact" in text
    assert result.provenance.settings.transport == "aiohttp"


def test_a_compressed_token_lies_within_its_bounds(tmp_path: Path) -> None:
    """The preflight sees that the server compresses; the loop is stopped again and again."""
    with timed_server(GAP_S, zipped=True) as server:
        result, records = asyncio.run(stalled(server.url, tmp_path / "records", preflight=True))
        tokens = server.compared(records)
    assert result.provenance.settings.transport == "aiohttp"
    assert result.tokens.unbounded_events == 0
    assert np.all(tokens.write <= tokens.arrival)
    assert np.mean(tokens.earliest <= tokens.written) >= COVERED
    text = " ".join(report.render(result).split())
    assert "Before the load: --transport aiohttp: the server compresses its answers (gzip)." in text


ZIPPED = gzip.compress(answer("a", "b"))


@pytest.mark.parametrize(
    "reply",
    [
        ENCODED % (b"gzip", b"Transfer-Encoding: chunked\r\n") + chunked(ZIPPED, 9),
        ENCODED % (b"deflate", b"Transfer-Encoding: chunked\r\n")
        + chunked(zlib.compress(answer("a", "b")), 9),
        ENCODED % (b"gzip", b"Content-Length: %d\r\n" % len(ZIPPED)) + ZIPPED,
    ],
    ids=["gzip-chunked", "deflate-chunked", "gzip-length"],
)
async def test_each_way_to_compress_is_read(reply: bytes) -> None:
    async with scripted(answering(reply)) as url, plain(url) as sender:
        record = await sender.one()
        assert (record.outcome, record.events, record.user_stamped) == (Outcome.OK, 2, 2)
        assert record.earliest is not None
        for early_ns, at_ns in zip(record.earliest, record.stamps, strict=True):
            assert record.sent <= early_ns <= at_ns


async def test_one_of_several_servers_compresses() -> None:
    plain_reply = streamed(answer("a", "b"))
    zipped = ENCODED % (b"gzip", b"Transfer-Encoding: chunked\r\n") + chunked(ZIPPED, 9)
    async with (
        scripted(chatting(lambda _: plain_reply)) as first,
        scripted(chatting(lambda _: zipped)) as second,
    ):
        result = await loadgen.run(RUN.replace(base_url=(first, second), num_prompts=10))
    assert result.outcomes["ok"] == 10
    assert result.provenance.settings.transport == "aiohttp"


# -- what the hooks of a run need


async def test_a_proxy_is_asked_for_the_whole_url() -> None:
    """It has no CONNECT, and wants to know who asks; the preflight goes the same way."""
    asked: list[tuple[str, str]] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while ask := await read_request(reader):
            asked.append((ask.path, ask.headers.get("proxy-authorization", "")))
            writer.write(
                whole(200, models("m")) if ask.method == "GET" else streamed(answer("a", "b"))
            )

    async with scripted(script) as url:
        result = await loadgen.run(
            loadgen.RunSettings(
                base_url="http://h.test:81",
                proxy=url.replace("http://", "http://me:se%40cret@"),
                transport="aiohttp",
                backend="openai-chat",
                tokenizer=TOKENIZER,
                random_input_len=16,
                random_output_len=2,
                request_rate=100.0,
                num_prompts=20,
            )
        )
    assert result.outcomes["ok"] == 20
    assert ("http://h.test:81/v1/chat/completions", USER) in asked
    assert {user for _, user in asked} == {USER}
    assert len(asked) > 20


class Busy:
    """A server that is busy at every third request, and gives each answer a token of its session;
    over it the hooks of a run are tried.
    """

    def __init__(self) -> None:
        self.posts, self.tokens = 0, set[str]()

    def answer(self, ask: Request) -> bytes:
        """Answer a request."""
        self.posts += 1
        self.tokens.add(ask.headers.get("x-token", ""))
        if self.posts % 3 == 0:
            return whole(503, b"busy", "Retry-After: 0")
        head = HEAD + b"X-Token: t%d\r\nTransfer-Encoding: chunked\r\n\r\n" % self.posts
        return head + chunked(answer(*"abcdef"), 1 << 16)


FEATURES = {
    "retries": {"retry": "503@attempts=9", "num_prompts": 20},
    "sessions": {
        "dataset_name": "multi_turn",
        "turns": "3",
        "session_token": "x-token",
        "retry": "503@attempts=9",
        "num_prompts": 12,
    },
    "departures": {"disconnect": "50%@tokens=2", "num_prompts": 20},
    "classes": {"classes": ("a:share=0.5", "b:share=0.5,random_input_len=8"), "num_prompts": 20},
    "users": {"users": 3, "request_rate": math.inf, "num_prompts": 20},
    "probe": {"probe_request_rate": 50.0, "num_prompts": 20},
    "warm-up": {"num_warmups": 4, "ready_check_timeout_sec": 5.0, "num_prompts": 20},
    "one piece": {"disable_stream": True, "num_prompts": 4},
}


@pytest.mark.parametrize("feature", FEATURES)
async def test_each_feature_of_a_run_works_over_both(feature: str) -> None:
    """What it makes of requests is the same, whichever transport carries them."""
    told = []
    for transport in ("compiled", "aiohttp"):
        busy = Busy()
        async with scripted(chatting(busy.answer)) as url:
            result = await loadgen.run(
                RUN.replace(**FEATURES[feature], base_url=url, transport=transport)
            )
        told.append((dict(result.outcomes), result.tokens.token_events, len(busy.tokens)))
    if feature != "probe":  # how many there are is a matter of time
        assert told[0] == told[1]
    assert sum(told[1][0].values()) == FEATURES[feature]["num_prompts"]


async def test_workers_carry_it(metronome: Process) -> None:
    async with open_workers(2) as workers:
        result = await run(
            RUN.replace(
                base_url=metronome.url, transport="aiohttp", num_prompts=20, preflight=False
            ),
            participant=workers,
        )
    assert result.outcomes["ok"] == 20
    assert result.tokens.user_stamped_events == result.tokens.token_events > 0


async def test_a_capture_is_what_the_sockets_gave(tmp_path: Path) -> None:
    """Compressed bytes too, and the end of a connection."""
    zipped = ENCODED % (b"gzip", b"Transfer-Encoding: chunked\r\n") + chunked(ZIPPED, 9)
    cut = streamed(answer("a", "b"))[:-40]

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while ask := await read_request(reader):
            if ask.method == "GET":
                writer.write(whole(200, models("m")))
                continue
            writer.write(cut if ask.index else zipped)
            if ask.index:
                writer.close()

    path = tmp_path / "capture"
    async with scripted(script) as url:
        await loadgen.run(
            RUN.replace(
                base_url=url,
                transport="aiohttp",
                preflight=False,
                num_prompts=2,
                model="m",
                capture=str(path),
                max_concurrency=1,
            )
        )
    first, second = capture.load(str(path)).responses
    assert b"".join(data for _, data in first.reads) == zipped
    assert b"".join(data for _, data in second.reads) == cut
    assert (first.end, second.end) == (End.RESPONSE, End.EOF)


async def test_what_comes_after_a_pause_may_have_come_since_the_read_before() -> None:
    """While reading is paused, the event loop is not told of what comes."""
    reads: list[tuple[bytes, bool]] = []

    def came(data: bytes, *, was_paused: bool) -> None:
        reads.append((data, was_paused))

    protocol = StampedProtocol()
    protocol.connection_made(asyncio.Transport())
    protocol.exchange = SimpleNamespace(came=came)  # type: ignore[assignment]
    protocol.data_received(b"a")
    pauses = SimpleNamespace(pause_reading=lambda: None)
    protocol._parser = protocol.transport = pauses  # type: ignore[assignment]
    protocol.pause_reading()
    protocol._parser = None
    protocol.data_received(b"b")
    protocol.data_received(b"c")
    assert reads == [(b"a", False), (b"b", True), (b"c", False)]
