"""The simulator's embeddings, pooling and rerank, over a loopback socket of a separate process."""

import pytest

from tests.helpers.raw_client import Client

TEXT = "one two three"


def test_an_embedding_has_a_vector_for_each_input(client: Client) -> None:
    reply = client.post("/v1/embeddings", model="sim", input=[TEXT, "four"]).json
    assert reply["object"] == "list"
    assert [(one["index"], one["object"]) for one in reply["data"]] == [
        (0, "embedding"),
        (1, "embedding"),
    ]
    assert all(isinstance(number, float) for one in reply["data"] for number in one["embedding"])
    assert reply["usage"] == {"prompt_tokens": 4, "total_tokens": 4, "completion_tokens": 0}


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"input": TEXT}, 3),
        ({"input": [5, 6]}, 2),
        ({"input": [[5, 6], [7]]}, 3),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": TEXT}]}]}, 3),
        ({"input": "one " * 2000, "truncate_prompt_tokens": -1}, 1024),
        ({"input": TEXT, "truncate_prompt_tokens": 2}, 2),
        ({"input": TEXT, "encoding_format": "base64"}, 3),
    ],
)
def test_inputs_of_every_form_are_counted(
    client: Client, body: dict[str, object], tokens: int
) -> None:
    for path in ("/v1/embeddings", "/pooling"):
        assert client.post(path, model="sim", **body).json["usage"]["prompt_tokens"] == tokens


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_a_rerank_counts_the_query_with_each_document(client: Client, path: str) -> None:
    reply = client.post(path, model="sim", query="one two", documents=["three", "four five"]).json
    assert [one["index"] for one in reply["results"]] == [0, 1]
    assert reply["usage"]["prompt_tokens"] == (2 + 1 + 1) + (2 + 1 + 2)


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/embeddings", {}, "input"),
        ("/v1/embeddings", {"input": ""}, "input"),
        ("/v1/embeddings", {"input": "one " * 2000}, "input"),
        ("/v1/embeddings", {"input": TEXT, "encoding_format": "bytes"}, "encoding_format"),
        ("/rerank", {"query": "one"}, "documents"),
        ("/rerank", {"query": "one", "documents": [1]}, "documents"),
        ("/pooling", {"input": TEXT, "model": "other"}, "model"),
    ],
)
def test_what_is_no_request_is_refused(
    client: Client, path: str, body: dict[str, object], param: str
) -> None:
    reply = client.post(path, **({"model": "sim"} | body))
    assert reply.status in (400, 404)
    assert reply.error["param"] == param


def test_nothing_is_generated(client: Client) -> None:
    before = client.request("GET", "/metrics").body.decode()
    client.post("/v1/embeddings", model="sim", input=[TEXT, TEXT])
    after = client.request("GET", "/metrics").body.decode()

    def value(text: str, name: str) -> float:
        return sum(
            float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if line.startswith(f"vllm:{name}")
        )

    grown = {
        name: value(after, name) - value(before, name)
        for name in ("generation_tokens", "prompt_tokens_total")
    }
    assert grown == {"generation_tokens": 0, "prompt_tokens_total": 6}
