"""Runs of embeddings, pooling and rerank: measured end to end, and reported without a word of
tokens.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import loadgen
from loadgen import report
from loadgen.engines import Server
from loadgen.errors import BadInput
from loadgen.lab.tools import emulate
from loadgen.report import run_page
from loadgen.report.result import RunResult
from tests.helpers.command_line import TOKENIZER
from tests.helpers.raw_client import FAST
from tests.helpers.sim_server import simulated

STREAM_WORDS = ("TTFT", "TPOT", "ITL", "ICL", "Output token", "generated", "steady output")
COUNT = 12


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with simulated(**FAST) as server:
        yield server


async def measured(server: Server, backend: Any, **options: Any) -> RunResult:
    asked: dict[str, Any] = {
        "num_prompts": COUNT,
        "request_rate": 200.0,
        "random_input_len": 16,
    } | options
    return await loadgen.run(
        loadgen.RunSettings(base_url=server.base_url, backend=backend, **asked)
    )


@pytest.mark.parametrize(
    "backend",
    ["openai-embeddings", "openai-embeddings-chat", "infinity-embeddings", "vllm-pooling"],
)
async def test_every_request_is_answered_and_counted(server: Server, backend: str) -> None:
    result = await measured(server, backend)
    assert (result.outcomes, result.numbers.total_input_tokens) == ({"ok": COUNT}, COUNT * 16)
    assert (result.e2el.count, result.ttft.count, result.tpot.count, result.icl.count) == (
        COUNT,
        0,
        0,
        0,
    )
    assert [
        check.name for check in result.failed_checks if check.group in "AEF"
    ] == []  # the others depend on time


async def test_warm_ups_and_the_ready_check_are_of_the_same_api(server: Server) -> None:
    result = await measured(server, "openai-embeddings", num_warmups=3, ready_check_timeout_sec=5.0)
    assert result.outcomes == {"ok": COUNT}


@asynccontextmanager
async def one_embedding() -> AsyncIterator[str]:
    """The URL of a server that answers each request with one embedding."""
    body = b'{"data":[{"index":0,"object":"embedding","embedding":[0.5]}]}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
                writer.write(answer % (len(body), body))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(("size", "outcome"), [(1, "ok"), (2, "protocol_error")])
async def test_an_answer_with_too_few_results_is_a_failure(
    size: int, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Also of a warm-up."""
    async with one_embedding() as url:
        result = await loadgen.run(
            loadgen.RunSettings(
                base_url=url,
                backend="openai-embeddings",
                model="m",
                tokenizer=TOKENIZER,
                num_prompts=4,
                num_warmups=1,
                random_batch_size=size,
                random_input_len=4,
            )
        )
    assert result.outcomes == {outcome: 4 // size}
    assert ("1 of 1 warm-up requests failed (protocol_error: 1)" in caplog.text) == (size == 2)


async def test_the_json_has_the_keys_of_vllm(server: Server, tmp_path: Path) -> None:
    result = await measured(
        server, "openai-embeddings", save_detailed=True, result_dir=str(tmp_path)
    )
    keys = {
        "duration",
        "completed",
        "total_input_tokens",
        "total_input_sequences",
        "request_throughput",
        "input_sequence_throughput",
        "total_token_throughput",
        "input_lens",
        "latencies",
        "queue_times",
        "errors",
        *("mean_e2el_ms", "median_e2el_ms", "std_e2el_ms", "p99_e2el_ms"),
    }
    absent = {
        "total_output_tokens",
        "output_throughput",
        "ttfts",
        "itls",
        "generated_texts",
        "mean_ttft_ms",
    }
    data = result.to_dict()
    assert keys <= data.keys()
    assert not absent & data.keys()
    again = RunResult.from_dict(data)
    assert (again.numbers, again.columns) == (result.numbers, result.columns)


async def test_no_report_speaks_of_tokens_that_were_generated(server: Server) -> None:
    result = await measured(server, "vllm-pooling")
    text = report.render(result)
    assert "Input throughput (inputs/s):" in text
    assert [word for word in STREAM_WORDS if word.lower() in text.lower()] == []
    page = run_page.html([result])
    assert "Input tokens" in page
    assert "Time to First Token" not in page


async def test_records_give_the_same_result(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    result = await measured(server, "openai-embeddings", records=str(path))
    again = loadgen.from_records(path)
    assert again.numbers == result.numbers
    assert again.tokens.results == COUNT
    with pytest.raises(BadInput):  # other tools' rules are about the times of tokens
        emulate.compare(path, "sglang")


async def test_a_server_without_the_api_fails_every_request(server: Server) -> None:
    result = await measured(server, "vllm-pooling", endpoint="/v1/pooling")
    assert result.outcomes == {"status(404)": COUNT}


async def test_a_limit_of_e2el_is_judged(server: Server) -> None:
    result = await measured(
        server, "openai-embeddings", slo="e2el_p50<10s", goodput=("e2el:10000",)
    )
    assert [row.met for row in result.slo] == [True]
    assert result.rates.good_share == 1.0


@pytest.mark.parametrize(
    ("options", "inputs", "tokens"),
    [
        ({"backend": "openai-embeddings"}, COUNT, 16),
        ({"backend": "vllm-rerank", "dataset_name": "random-rerank"}, COUNT, 16),
    ],
)
async def test_several_texts_in_a_request(
    server: Server, options: dict[str, Any], inputs: int, tokens: int
) -> None:
    result = await measured(server, **options, random_batch_size=5)
    numbers = result.numbers
    assert result.outcomes == {"ok": 3}
    assert (numbers.total_input_sequences, numbers.total_input_tokens) == (inputs, inputs * tokens)
    assert [check.name for check in result.failed_checks if check.group in "AEF"] == []


@pytest.mark.parametrize("backend", ["openai", "openai-chat", "sglang-native"])
async def test_a_text_in_one_piece_has_its_tokens_and_no_times_of_them(
    server: Server, backend: str, tmp_path: Path
) -> None:
    saving: dict[str, Any] = {"save_detailed": True, "result_dir": str(tmp_path)}
    result = await measured(server, backend, disable_stream=True, random_output_len=5, **saving)
    numbers = result.numbers
    assert (result.outcomes, numbers.total_output_tokens) == ({"ok": COUNT}, COUNT * 5)
    assert (result.e2el.count, result.ttft.count, result.tpot.count, result.icl.count) == (
        COUNT,
        0,
        0,
        0,
    )
    assert (numbers.output_throughput or 0) > 0
    assert numbers.max_output_tokens_per_s is None
    data = result.to_dict()
    assert (data["output_lens"], all(data["generated_texts"])) == ([5] * COUNT, True)
    assert not {"ttfts", "itls"} & data.keys()
    assert [check.name for check in result.failed_checks if check.group in "AEF"] == []
    text = report.render(result)
    assert "TTFT from" not in text  # the server's own is beside n/a
    assert re.search(rf"output, counted by usage +{COUNT * 5}\n", text)
    assert RunResult.from_dict(data).numbers == numbers


async def test_records_of_texts_in_one_piece_give_the_same_report(
    server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "records.jsonl"
    result = await measured(
        server, "openai", disable_stream=True, random_output_len=5, records=str(path)
    )
    again = loadgen.from_records(path)
    assert (again.e2el, again.ttft.count, again.streams) == (result.e2el, 0, False)
