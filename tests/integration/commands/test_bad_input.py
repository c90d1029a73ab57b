"""Bad input prints one line with field and remedy, exits with 2 and sends no request."""

import json
import os
import socket
from pathlib import Path

import pytest

from loadgen.cli.main import dispatch
from tests.helpers import chat_templates
from tests.helpers import trained_tokenizers as trained
from tests.helpers.command_line import loadgen, served
from tests.helpers.source import ROOT

TOKENIZER = str(ROOT / "engines" / "sim" / "tokenizer.json")
PROGRESS = tuple(
    f"loadgen: {phase}" for phase in ("starting", "preparing", "connecting", "warming up")
)


OWN_SERVER = frozenset(("--base-url", "--engine", "--engine-arg", "--replicas"))


def refused(*arguments: str, cwd: Path | None = None) -> str:
    done = loadgen(*arguments, cwd=cwd)
    return only_line(done.returncode, done.stdout, done.stderr)


def only_line(code: int, stdout: str, stderr: str) -> str:
    assert code == 2, (stdout, stderr)
    assert stdout == ""
    lines = [line for line in stderr.splitlines() if not line.startswith(PROGRESS)]
    assert len(lines) == 1, stderr
    return lines[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "field", "remedy"),
    [
        (["--rate", "0"], "--request-rate", "above 0"),
        (["--rate", "-5"], "--request-rate", "above 0"),
        (["--rate", "nan"], "--request-rate", "above 0"),
        (["--rate", "1,2", "--class", "a:slo=ttft_p99<1s"], "--class", "leave slo out"),
        (["--rate=-inf"], "--request-rate", "above 0"),
        (["--rate", "1e9"], "--request-rate", "up to 1,000,000"),
        (["--rate", "fast"], "--request-rate", "digits only"),
        (["--duration", "30 parsecs"], "--duration", "500ms"),
        (["--num-prompts", "1k"], "--num-prompts", "digits only"),
        (["--compat", "vllm-0.11", "--compat", "sglang"], "--compat", "give it once"),
        (["--frequency-penalti", "3"], "--frequency-penalti", "--frequency-penalty"),
        (["--nonsense"], "--nonsense", "--help"),
        (["http://127.0.0.1:8000"], "http://127.0.0.1:8000", "--base-url http://127.0.0.1:8000"),
        (["--numprompts", "3"], "--numprompts", "--num-prompts"),
        (["--num-prompts", "0"], "--num-prompts", "1 to 50,000,000"),
        (["--random-input-len", "0"], "--random-input-len", "1 token"),
        (["--random-range-ratio", "1.5"], "--random-range-ratio", "below 1"),
        (["--random-input-len", "normal:100"], "--random-input-len", "normal:MEAN:STDEV"),
        (["--random-output-len", "@nowhere"], "--random-output-len", "whole numbers"),
        (
            ["--random-input-len", "1:9", "--random-range-ratio", "0.5"],
            "--random-range-ratio",
            "the range itself",
        ),
        (["--input-len-counts", "both"], "--input-len-counts", "--help"),
        (["--dataset-name", "sharegtp"], "--dataset-name", "sharegpt"),
        (["--dataset-name", "sharegpt"], "--dataset-path", "ShareGPT"),
        (
            ["--dataset-name", "sharegpt", "--dataset-path", "none.json"],
            "--dataset-path",
            "none.json",
        ),
        (["--tokenizer", "./nowhere"], "--tokenizer", "tokenizer.json"),
        (["--tokenizer", "~nobody-at-home/x"], "--tokenizer", "tokenizer.json"),
        (["--workload", "shrot"], "--workload", "short"),
        (["--workload", "~nobody-at-home/x"], "--workload", "short"),
        (["--api-key", "@~nobody-at-home/x"], "--api-key", "name a readable file"),
        (["--config", "none.yaml"], "--config", "YAML"),
        (["--base-url", "gpu-box"], "--base-url", "http://"),
        (["--records", "/nowhere/r.jsonl"], "--records", "another"),
        (["--result-dir", "/proc/results", "--save-result"], "--result-dir", "another"),
        (["--slo", "ttft<3"], "--slo", "ttft_p99"),
        (["--source-address", "eth0"], "--source-address", "10.0.0.5"),
        (["--engine", "nope", "--model", "m"], "--engine", "llamacpp"),
        (["--engine", "vllm"], "--model", "hub name"),
        (["--engine", "sim", "--port", "8000"], "--port", "leave one of the two out"),
        (["--engine-arg", "max_seqs=3"], "--engine-arg", "--engine"),
        (["--replicas", "2"], "--replicas", "--engine"),
        (["--engine", "sim", "--replicas", "0"], "--replicas", "1 to 128"),
        (["--engine", "sim", "--replicas", "1000"], "--replicas", "1 to 128"),
        (
            ["--engine", "sim", "--replicas", "2", "--devices", "0,1,2"],
            "--devices",
            "multiple of 2",
        ),
        (["--engine", "sim", "--devices", "0,,1"], "--devices", "empty"),
        (
            ["--engine", "sim", "--engine-arg", "max_seqs=many"],
            "--engine-arg max_seqs",
            "whole number",
        ),
        (["--engine", "sim", "--engine-timeout", "0"], "--engine-timeout", "above 0"),
        (
            ["--engine", "sim", "--dataset-name", "sharegpt", "--dataset-path", "none.json"],
            "--dataset-path",
            "none",
        ),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_in_one_line(
    arguments: list[str], field: str, remedy: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """In this process, for they are many; those below are refused as a user calls."""
    simulator = [] if OWN_SERVER.intersection(arguments) else ["--engine", "sim"]
    line = only_line(dispatch(["run", *simulator, *arguments]), *capfd.readouterr())
    assert field in line
    assert remedy in line


def test_a_command_that_does_not_exist_is_refused_with_the_nearest_one() -> None:
    assert "'run'" in refused("rum")
    assert "`loadgen run --rate`" in refused("--rate", "3")


def test_a_dead_server_is_refused_before_anything_is_sent() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        line = refused("run", "--base-url", url, "--tokenizer", TOKENIZER)
    assert url in line
    assert "--base-url" in line


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--rate", "0"], "--request-rate: 0 is out of range; give a number above 0"),
        (["--slo", "foo<500ms"], "--slo: unknown metric in 'foo<500ms'; choose from ttft, "),
        (
            ["--random-range-ratio", "2"],
            "--random-range-ratio: 2 is not in range; give a number from 0 to below 1",
        ),
        (
            ["--dataset-name", "radnom"],
            "--dataset-name: unknown data set 'radnom'; choose one of: agentic, ",
        ),
        (
            ["--dataset-name", "random", "--turns", "2"],
            "--turns: has no effect on the data set random; leave it out",
        ),
        (
            ["--class", "a:rate=1,dataset_name=radnom"],
            "--class: a: --dataset-name: unknown data set 'radnom'; choose one of: agentic, ",
        ),
        (
            ["--session-header", "X-A"],
            "--session-header: has no effect without sessions; leave it out",
        ),
        (["--users", "3", "--burstiness", "2"], "--burstiness: given together with --users, "),
        (
            ["--tokenizer", "/dev/null"],
            "--tokenizer: /dev/null is neither a file nor a folder; give a tokenizer.json",
        ),
        (
            ["--tokenizer", "./nowhere"],
            "--tokenizer: file or folder ./nowhere does not exist; give a tokenizer.json",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_value_is_refused_before_the_server_is_contacted(
    arguments: list[str], line: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert refused("run", "--base-url", url, *arguments).startswith(f"loadgen run: {line}")
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.slow
def test_a_model_the_server_does_not_have_is_refused_with_those_it_has() -> None:
    with served("--served-model-name", "this-one") as (url, _):
        line = refused("run", "--base-url", url, "--model", "that-one", "--tokenizer", TOKENIZER)
    assert "that-one" in line
    assert "this-one" in line


@pytest.mark.slow
def test_a_test_request_that_fails_is_refused() -> None:
    with served("--max-model-len", "64", "--max-num-batched-tokens", "8192") as (url, _):
        flags = [
            "--base-url",
            url,
            "--tokenizer",
            TOKENIZER,
            "--num-prompts",
            "1",
            "--ready-check-timeout-sec",
            "0.2",
        ]
        line = refused("run", *flags, "--random-input-len", "1000")
    assert "--ready-check-timeout-sec" in line
    assert "status" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"{}", "--dataset-path"),
        (b"not json", "--dataset-path"),
        (b"[]", "--dataset-path"),
    ],
)
def test_a_file_that_is_no_sharegpt_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "s.json").write_bytes(content)
    data = ("--dataset-name", "sharegpt", "--dataset-path", "s.json")
    line = refused("run", "--engine", "sim", *data, cwd=tmp_path)
    assert said in line


@pytest.mark.slow
def test_a_sharegpt_file_that_was_cut_off_is_used_up_to_the_cut_with_a_warning(
    tmp_path: Path,
) -> None:
    turns = [
        {"from": "human", "value": "one two three four five"},
        {"from": "gpt", "value": "a b c d e f"},
    ]
    whole = json.dumps([{"id": str(number), "conversations": turns} for number in range(3)])
    (tmp_path / "s.json").write_text(whole[:-40])
    flags = [
        "--dataset-name",
        "sharegpt",
        "--dataset-path",
        "s.json",
        "--num-prompts",
        "4",
        "--rate",
        "100",
    ]
    done = loadgen("run", "--engine", "sim", *flags, "--json", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "s.json: the file is truncated; its 2 complete conversations are used" in done.stderr
    result = json.loads(done.stdout)
    assert result["completed"] == 4
    assert result["loadgen"]["provenance"]["prompts"]["file_cut_off"]


@pytest.mark.slow
def test_a_length_that_the_template_of_the_tokenizer_fills_is_refused(tmp_path: Path) -> None:
    tokenizer = str(trained.wordpiece(tmp_path))
    with served() as (url, _):
        line = refused(
            "run", "--base-url", url, "--tokenizer", tokenizer, "--random-input-len", "2"
        )
    assert "--random-input-len: 2 leaves no token after 2 special tokens; give at least 3" in line


@pytest.mark.slow
def test_a_length_that_the_chat_template_fills_is_refused_with_both_numbers(tmp_path: Path) -> None:
    folder = chat_templates.beside(
        Path(TOKENIZER), "{% for m in messages %}<>{{ m.content }}</{% endfor %}", tmp_path
    )
    with served("--chat-template-tokens", "4") as (url, _):
        flags = ["--base-url", url, "--backend", "openai-chat", "--tokenizer", str(folder)]
        line = refused("run", *flags, "--random-input-len", "4", "--input-len-counts", "server")
    assert (
        "--random-input-len: 4 leaves no token after 4 of the chat template; give at least 5"
        in line
    )


def test_an_unknown_key_in_a_profile_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("dataset_sed: 3\n")
    line = refused("run", "--workload", "p.yaml", cwd=tmp_path)
    assert "p.yaml: dataset_sed" in line
    assert "dataset_seed" in line


def test_an_unknown_key_in_a_file_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("request_rat: 3\n")
    line = refused("run", "--config", "c.yaml", cwd=tmp_path)
    assert "request_rat" in line
    assert "'request_rate'" in line


@pytest.mark.slow
def test_a_report_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert "x.json is not a loadgen result" in refused("report", "x.json", cwd=tmp_path)


def test_closed_standard_streams_are_no_crash() -> None:
    import subprocess

    from tests.helpers.command_line import LOADGEN, environment

    run = [
        *LOADGEN,
        "run",
        "--engine",
        "sim",
        "--num-prompts",
        "2",
        "--rate",
        "20",
        "--random-output-len",
        "2",
        "--quiet",
    ]
    closed = ["sh", "-c", '"$@" >&- <&-', "sh", *run]
    done = subprocess.run(
        closed, stderr=subprocess.PIPE, text=True, env=environment(), check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pipe_without_a_reader_is_no_crash(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    import subprocess

    from tests.helpers.command_line import LOADGEN, environment

    done = subprocess.run(
        [*LOADGEN, "--help"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        check=False,
        timeout=30,
    )
    os.close(writing)
    assert "Traceback" not in done.stderr
