"""The roofline server sends each complete answer at once."""

from loadgen.testing.process import Process, started
from tests.helpers.raw_client import Client, Reply

PATH = "/v1/chat/completions"


def ask(url: str, **fields: object) -> Reply:
    client = Client(url)
    reply = client.request("POST", PATH, {"stream": True} | fields)
    client.close()
    return reply


def test_an_answer_has_the_tokens_that_were_asked(roofline: Process) -> None:
    for wanted in (1, 7, 1):
        *tokens, finish, usage, done = ask(roofline.url, max_tokens=wanted).events
        assert [each["choices"][0]["delta"]["content"] for each in tokens] == [" tick"] * wanted
        assert finish["choices"][0]["finish_reason"] == "length"
        assert usage["usage"]["completion_tokens"] == wanted
        assert done == "[DONE]"


def test_whole_and_per_event_writes_have_the_same_bytes(roofline: Process) -> None:
    with started("loadgen.testing.roofline", "--each") as each:
        assert ask(each.url, max_tokens=20).body == ask(roofline.url, max_tokens=20).body


def test_a_question_that_cannot_be_answered_is_refused_by_name(roofline: Process) -> None:
    assert ask(roofline.url, stream=False).error["param"] == "stream"


def test_the_model_is_listed(roofline: Process) -> None:
    client = Client(roofline.url)
    assert client.request("GET", "/v1/models").json["data"][0]["id"] == "roofline"
    client.close()
