"""The metronome: a plain stream for any client, and the truth about it."""

import json
import socket
from typing import Any

import numpy as np
import pytest

from loadgen.testing.metronome import Pace
from loadgen.testing.process import Process, started
from loadgen.testing.truth import Truth
from tests.helpers.raw_client import Client, Reply, raw

FAST = {"first_ms": 1.0, "gap_ms": 1.0}
PATH = "/v1/chat/completions"


@pytest.fixture(autouse=True)
def _nothing_is_known(metronome: Process) -> None:
    Truth.forget(metronome.url)


def ask(server: Process, number: int = 0, path: str = PATH, **fields: Any) -> Reply:
    client = Client(server.url)
    body = {"stream": True, "max_completion_tokens": 5, "metronome": FAST} | fields
    reply = client.request("POST", path, body, headers=f"X-Request-Id: test-{number}\r\n")
    client.close()
    return reply


def tokens(reply: Reply) -> list[dict[str, Any]]:
    return [each for each in reply.events if "plan_ns" in each]


def test_an_answer_is_a_stream_as_any_client_expects_it(metronome: Process) -> None:
    *chunks, done = ask(metronome).events
    assert done == "[DONE]"
    role, *between, finish, usage = chunks
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [each["choices"][0]["delta"]["content"] for each in between] == [" tick"] * 5
    assert finish["choices"][0]["finish_reason"] == "length"
    assert usage["usage"]["completion_tokens"] == 5
    assert {each["object"] for each in chunks} == {"chat.completion.chunk"}


def test_completions_are_pieces_of_text_without_a_role(metronome: Process) -> None:
    *chunks, done = ask(metronome, path="/v1/completions").events
    assert done == "[DONE]"
    *between, finish, usage = chunks
    assert [each["choices"][0]["text"] for each in between] == [" tick"] * 5
    assert (finish["choices"][0]["text"], finish["choices"][0]["finish_reason"]) == ("", "length")
    assert usage["usage"]["completion_tokens"] == 5
    assert {each["object"] for each in chunks} == {"text_completion"}
    assert len(tokens(ask(metronome, path="/v1/completions"))) == 5


def test_the_truth_is_what_the_events_say(metronome: Process) -> None:
    told = tokens(ask(metronome, 42))
    truth = Truth.fetch(metronome.url)
    assert truth.id.tolist() == [b"test-42"]
    assert truth.number.tolist() == [42]
    assert truth.starts.tolist() == [0, 5]
    assert truth.plan_ns.tolist() == [each["plan_ns"] for each in told]
    assert truth.write_ns.tolist() == [each["write_ns"] for each in told]
    assert np.all(truth.write_ns >= truth.plan_ns)
    assert truth.late_ns.tolist() == (truth.write_ns - truth.plan_ns).tolist()


def test_tokens_are_due_by_the_plan_from_the_arrival(metronome: Process) -> None:
    pace = Pace(shape="lognormal", first_ms=3.0, gap_ms=2.0, seed=9)
    ask(metronome, 11, metronome={"shape": "lognormal", "first_ms": 3.0, "gap_ms": 2.0, "seed": 9})
    truth = Truth.fetch(metronome.url)
    assert (truth.plan_ns - truth.arrival_ns[0]).tolist() == pace.offsets_ns(11, 5).tolist()


def test_a_queue_serves_one_after_another(metronome: Process) -> None:
    clients = [Client(metronome.url) for _ in range(3)]
    body = {"stream": True, "metronome": {"queue": True, "first_ms": 20.0}}
    for number, client in enumerate(clients):
        client.send(raw("POST", PATH, body, headers=f"X-Request-Id: q-{number}\r\n"))
    for client in clients:
        assert len(tokens(client.receive())) == 1
        client.close()
    truth = Truth.fetch(metronome.url)
    leaves, free = [], 0
    for arrival in sorted(truth.arrival_ns.tolist()):
        free = max(arrival, free) + 20_000_000
        leaves.append(free)
    assert sorted(truth.plan_ns.tolist()) == leaves


def test_the_truth_can_be_forgotten(metronome: Process) -> None:
    ask(metronome)
    Truth.forget(metronome.url)
    truth = Truth.fetch(metronome.url)
    assert len(truth.id) == len(truth.plan_ns) == 0
    assert not truth.overloaded


def test_a_client_that_leaves_is_remembered_by_what_it_was_sent(metronome: Process) -> None:
    client = Client(metronome.url)
    body = {"stream": True, "max_tokens": 3, "metronome": {"first_ms": 1.0, "gap_ms": 2000.0}}
    client.send(raw("POST", PATH, body))
    while b"plan_ns" not in client.socket.recv(1 << 16):
        pass
    client.socket.shutdown(socket.SHUT_RDWR)
    client.close()
    # Longer than the rest: it has been let go when this one has ended.
    ask(metronome, metronome={"first_ms": 2500.0})
    truth = Truth.fetch(metronome.url)
    assert (truth.write_ns[:3] > 0).tolist() == [True, False, False]
    assert len(truth.late_ns) == 3 - 2 + 5


def test_tokens_that_come_late_on_their_own_account_are_told() -> None:
    def truth(late_ns: int) -> Truth:
        plan = np.arange(100, dtype=np.int64) + 1
        one = np.zeros(1, dtype=np.int64)
        return Truth(
            np.array([b"a-1"]),
            one,
            np.array([0, 100]),
            plan,
            plan + late_ns,
            plan + late_ns,
            0,
            0.0,
        )

    assert not truth(900_000).overloaded
    assert truth(1_100_000).overloaded


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"stream": False}, "stream"),
        ({"max_completion_tokens": -1}, "max_completion_tokens"),
        ({"metronome": {"shape": "square"}}, "shape"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_by_name(
    metronome: Process, fields: dict[str, Any], named: str
) -> None:
    reply = ask(metronome, **fields)
    assert reply.status == 400
    assert reply.error["param"] == named


def test_the_model_is_listed_and_other_paths_are_not_there(metronome: Process) -> None:
    client = Client(metronome.url)
    assert client.request("GET", "/v1/models").json["data"][0]["id"] == "metronome"
    assert client.request("GET", "/v1/model").status == 404
    client.close()


def test_flags_give_the_plan_of_requests_without_one() -> None:
    with started(
        "loadgen.testing.metronome", "--first-ms", "2", "--gap-ms", "1", "--tokens", "3"
    ) as server:
        client = Client(server.url)
        reply = client.request("POST", PATH, {"stream": True})
        client.close()
        truth = Truth.fetch(server.url)
    assert (
        json.loads(reply.body.split(b"\n\n")[-4].removeprefix(b"data: "))["choices"][0][
            "finish_reason"
        ]
        == "length"
    )
    assert (truth.plan_ns - truth.arrival_ns[0]).tolist() == [2_000_000, 3_000_000, 4_000_000]


def test_an_answer_need_not_wait_for_one_that_is_due_later() -> None:
    with started("loadgen.testing.metronome") as server:
        later = Client(server.url)
        later.send(raw("POST", PATH, {"stream": True, "metronome": {"first_ms": 600_000.0}}))
        while b"assistant" not in later.socket.recv(1 << 16):
            pass
        assert len(tokens(ask(server))) == 5
        later.close()
