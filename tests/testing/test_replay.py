"""Replay in virtual time: each read at its time after the request, and the recorded end."""

import json

import pytest

from loadgen.core.read_loop import NEVER
from loadgen.engines.sim import connection as server_connection
from loadgen.engines.sim.http1 import RequestReader
from loadgen.features.capture import CapturedResponse, End, Recording
from loadgen.testing import replay
from loadgen.testing.replay import Connection, Replay
from loadgen.util.clock import Clock

MS = 1_000_000


class World:
    """A clock that moves only when a test lets it, and the one alarm on it."""

    def __init__(self):
        self.now, self.at_ns = 1000 * MS, NEVER

    def alarm(self, loop, callback):
        self.ring = callback
        return self

    def set(self, due_ns):
        self.at_ns = due_ns

    def call_soon(self, callback):
        callback()

    def pass_ms(self, ms):
        until = self.now + round(ms * MS)
        while self.at_ns <= until:
            self.now, self.at_ns = max(self.now, self.at_ns), NEVER
            self.ring()
        self.now = until


class Wire:
    """A transport that notes what it was told, and when."""

    def __init__(self, world):
        self.world, self.did, self.options = world, [], []

    def _note(self, what):
        self.did.append(((self.world.now - 1000 * MS) / MS, what))

    def write(self, data):
        self._note(data)

    def close(self):
        self._note("closed")

    def abort(self):
        self._note("aborted")

    def is_closing(self):
        return bool(self.did) and self.did[-1][1] in ("closed", "aborted")

    def get_extra_info(self, name):
        return self

    def setsockopt(self, *option):
        self.options.append(option)


@pytest.fixture
def world(monkeypatch):
    world = World()
    monkeypatch.setattr(server_connection, "now_ns", lambda: world.now)
    monkeypatch.setattr(replay, "KERNEL", Clock(lambda: world.now, world.alarm))
    monkeypatch.setattr(server_connection.asyncio, "get_running_loop", lambda: world)
    return world


def captured(index=0, reads=((10, b"a"), (15, b"b")), end=End.RESPONSE, ended=None):
    ns = tuple((ms * MS, data) for ms, data in reads)
    return CapturedResponse(
        index, 0, 0, 1, 1, ns, end, (reads[-1][0] if ended is None else ended) * MS
    )


def connected(world, *responses, speed=1.0):
    wire, connection = Wire(world), Connection(Replay(Recording("m", responses), speed))
    connection.connection_made(wire)
    return wire, connection


def request(body=b"{}", request_id=b"", method=b"POST /v1/chat/completions"):
    named = b"X-Request-Id: %b\r\n" % request_id if request_id else b""
    return (
        b"%b HTTP/1.1\r\nHost: h\r\n%bContent-Length: %d\r\n\r\n" % (method, named, len(body))
        + body
    )


def chosen_for(chooser, raw):
    reader = RequestReader()
    reader.feed(raw)
    return chooser.choose(reader.next_request()).index


def test_each_read_is_written_at_its_time_after_the_request(world):
    wire, connection = connected(world, captured())
    world.pass_ms(3)
    connection.data_received(request())
    world.pass_ms(100)
    assert wire.did == [(13, b"a"), (18, b"b")]


def test_the_request_has_come_when_its_last_byte_has(world):
    wire, connection = connected(world, captured())
    for byte in request(b"long body"):
        connection.data_received(bytes([byte]))
        world.pass_ms(1)
    begin = len(request(b"long body")) - 1
    world.pass_ms(100)
    assert wire.did == [(begin + 10, b"a"), (begin + 15, b"b")]


@pytest.mark.parametrize(("speed", "times"), [(2, [5, 7.5]), (0.5, [20, 30])])
def test_speed_divides_every_time(world, speed, times):
    wire, connection = connected(world, captured(), speed=speed)
    connection.data_received(request())
    world.pass_ms(100)
    assert [at for at, _ in wire.did] == times


def test_late_turn_does_not_shift_later_reads(world):
    wire, connection = connected(world, captured(reads=((10, b"a"), (20, b"b"), (60, b"c"))))
    connection.data_received(request())
    world.now += 40 * MS  # nobody rang meanwhile
    world.pass_ms(50)
    assert wire.did == [(40, b"a"), (40, b"b"), (60, b"c")]


def test_many_connections_are_served_side_by_side(world):
    replay_ = Replay(Recording("m", (captured(0), captured(1, reads=((12, b"c"),)))))
    wires = []
    for _ in range(2):
        wires.append(Wire(world))
        connection = Connection(replay_)
        connection.connection_made(wires[-1])
        connection.data_received(request())
    world.pass_ms(100)
    assert [wire.did for wire in wires] == [[(10, b"a"), (15, b"b")], [(12, b"c")]]


def test_complete_response_keeps_the_connection_open(world):
    wire, connection = connected(world, captured())
    connection.data_received(request() + request())
    world.pass_ms(100)
    assert wire.did == [(10, b"a"), (15, b"b"), (25, b"a"), (30, b"b")]


@pytest.mark.parametrize(
    ("end", "did"), [(End.EOF, [(40, "closed")]), (End.RESET, [(40, "aborted")]), (End.CLIENT, [])]
)
def test_the_connection_ends_as_it_ended_and_when(world, end, did):
    wire, connection = connected(world, captured(reads=((10, b"a"),), end=end, ended=40))
    connection.data_received(request() + request())
    world.pass_ms(100)
    assert wire.did == [(10, b"a"), *did]
    assert bool(wire.options) == (end is End.RESET)


def test_gone_client_gets_no_more_bytes(world):
    wire, connection = connected(world, captured())
    connection.data_received(request())
    world.pass_ms(12)
    wire.close()
    world.pass_ms(100)
    assert wire.did == [(10, b"a"), (12, "closed")]


def test_index_selects_response_and_wraps_around():
    chooser = Replay(Recording("m", (captured(0), captured(3), captured(5))))
    chosen = [
        chosen_for(chooser, request(request_id=b"loadgen-%d" % n)) for n in (5, 0, 3, 3, 1, 7, 9)
    ]
    assert chosen == [5, 0, 3, 3, 3, 3, 0]


def test_requests_without_index_get_responses_in_turn():
    chooser = Replay(Recording("m", (captured(0), captured(3))))
    asked = [request(), request(request_id=b"4f2a-5"), request()]
    assert [chosen_for(chooser, head) for head in asked] == [0, 3, 0]


def test_models_are_listed_and_other_questions_are_not_found(world):
    wire, connection = connected(world, captured())
    connection.data_received(
        b"GET /v1/models HTTP/1.1\r\nHost: h\r\n\r\nGET /version HTTP/1.1\r\nHost: h\r\n\r\n"
    )
    listed, missing = (data for _, data in wire.did)
    assert json.loads(listed.partition(b"\r\n\r\n")[2])["data"][0]["id"] == "m"
    assert missing.startswith(b"HTTP/1.1 404")
