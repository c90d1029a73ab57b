"""Messages between processes: whole, in their order, and such as need not be heard never wait."""

import contextlib
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from loadgen.util import messages
from loadgen.util.messages import Voice

LONG = "x" * (1 << 18)  # four times what a pipe holds


@contextlib.contextmanager
def spoken() -> Iterator[tuple[Voice, int]]:
    """A voice, and where it is heard."""
    heard, said = os.pipe()
    try:
        yield Voice(said), heard
    finally:
        os.close(heard)
        os.close(said)


def hear(pipe: int) -> list[object]:
    """All that was said, to the end of the last line, if it ends there."""
    os.set_blocking(pipe, False)
    data = b""
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(pipe, 1 << 20):
            data += piece
    *lines, rest = data.split(b"\n")
    return [*map(messages.decode, lines), *([rest] if rest else [])]


def test_what_is_told_is_heard() -> None:
    with spoken() as (voice, pipe):
        voice.tell_if_heard({"a": 1})
        voice.tell(("b", 2))
        assert hear(pipe) == [{"a": 1}, ("b", 2)]


@pytest.mark.timeout(10)
def test_nobody_who_does_not_listen_is_waited_for() -> None:
    with spoken() as (voice, pipe):
        for number in range(100_000):
            voice.tell_if_heard(number)
        heard = hear(pipe)
        assert heard == list(range(len(heard)))
        voice.tell_if_heard("later")
        assert hear(pipe) == [len(heard), "later"]  # the one that it had begun with, and no other between


@pytest.mark.timeout(10)
def test_the_rest_of_what_did_not_fit_goes_before_anything_else() -> None:
    with spoken() as (voice, pipe):
        voice.tell_if_heard(LONG)
        voice.tell_if_heard("not now")
        heard = b""
        while not heard.endswith(b"\n"):
            heard += os.read(pipe, 1 << 20)
            voice.tell_if_heard("then")
        first, *others = map(messages.decode, heard.splitlines())
        assert first == LONG
        assert set(others) <= {"then"}


def test_what_must_be_heard_waits_and_does_not_turn() -> None:
    with spoken() as (voice, pipe), ThreadPoolExecutor(1) as thread:
        voice.tell_if_heard("a")
        telling = thread.submit(voice.tell, LONG)
        heard = b""
        while heard.count(b"\n") < 2:
            heard += os.read(pipe, 1 << 20)
        telling.result(10)
        assert [messages.decode(line) for line in heard.splitlines()] == ["a", LONG]
        assert os.get_blocking(voice._pipe)


def test_it_waits_no_more_for_a_socket_than_for_a_pipe() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        voice = Voice(ours.fileno())
        voice.tell_if_heard(LONG * 10)
        assert len(theirs.recv(1 << 24)) < len(LONG) * 10


def test_once_nobody_can_hear_any_more_nothing_is_said() -> None:
    heard, said = os.pipe()
    os.close(heard)
    voice = Voice(said)
    voice.tell("a")
    voice.tell_if_heard("b")
    os.close(said)
