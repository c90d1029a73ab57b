"""`loadgen dataset` shows, exports and downloads what a run would send, without sending it."""

import json
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.cli.commands import dataset
from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings
from loadgen.workload import datasets
from loadgen.workload.datasets import prompt_cache
from loadgen.workload.datasets.prompt_rows import line as to_line
from loadgen.workload.datasets.random_words import RandomDataset
from loadgen.workload.files import download
from loadgen.workload.prompt import Prompt
from tests.helpers.command_line import LOADGEN, SHORT, TOKENIZER, environment, hear, loadgen, start
from tests.integration.workload.test_download import CONTENT, PUBLISHED, SHA256, server

__all__ = ["server"]  # a fixture

FLAGS = ["--tokenizer", TOKENIZER, *SHORT, "--num-prompts", "20", "--quiet"]
SETTINGS = RunSettings(
    tokenizer=TOKENIZER, random_input_len=16, random_output_len=4, num_prompts=20
)
LONG = ["--tokenizer", TOKENIZER, "--random-input-len", "100000", "--num-prompts", "3000"]


def rows() -> list[bytes]:
    """What the settings of FLAGS export."""
    return [to_line(prompt) for prompt in datasets.create(SETTINGS).prompts(20)]


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert dispatch(["dataset", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


# -- refused


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--dataset-name", "multi_turn"],
            "--dataset-name: its prompts are chats, and this API takes no messages; use a chat",
        ),
        (
            ["--backend", "openai-chat", "--input-len-counts", "server"],
            "--input-len-counts: the tokenizer",
        ),
        (["--time-scale", "1e-9"], "--time-scale: 1e-09 is out of range"),
    ],
)
def test_settings_a_run_refuses_are_refused_without_a_server(
    capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    assert message in refusal(capsys, *FLAGS, *flags)


def test_a_trace_of_fewer_rows_than_asked_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 9, "output_length": 2, "hash_ids": []}\n')
    flags = [
        "--tokenizer",
        TOKENIZER,
        "--quiet",
        "--dataset-name",
        "trace",
        "--dataset-path",
        str(path),
    ]
    assert "--num-prompts: 2 " in refusal(capsys, *flags, "--num-prompts", "2")


# -- shown


def test_dataset_shows_the_requests_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["dataset", *FLAGS]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("Data set\n  random, rule: exact words\n  20 prompts, all distinct\n")
    assert "input     320  16.0   16" in out


def test_the_default_tokenizer_is_the_simulators(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for flags in (FLAGS, FLAGS[2:]):
        assert dispatch(["dataset", *flags, "--json"]) == 0
        shown.append(json.loads(capsys.readouterr().out)["hashes"])
    assert shown[0] == shown[1]
    assert dispatch(["dataset", *FLAGS[2:-1], "--json"]) == 0
    assert "give --tokenizer" in capsys.readouterr().err


def test_a_model_takes_the_place_of_the_default_tokenizer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "file or folder ./model does not exist" in refusal(capsys, "--model", "./model")


def test_json_is_one_object_on_stdout_and_the_rest_is_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dispatch(["dataset", *FLAGS, "--json"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["num_prompts"], told["total_input_tokens"], told["total_output_tokens"]) == (
        20,
        320,
        80,
    )
    assert told["hashes"]["tokenizer"] == told["provenance"]["tokenizer_sha256"]
    assert err.startswith("Data set\n")


def test_a_workload_says_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["dataset", "--workload", "short", "--tokenizer", TOKENIZER, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (
        told["num_prompts"],
        told["total_input_tokens"],
        told["provenance"]["seed_prompts"],
    ) == (1000, 128_000, 42)


def test_without_a_number_of_prompts_it_is_that_of_a_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dispatch(["dataset", *FLAGS[:6], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["num_prompts"] == 1000


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("--input-len 16 --output-len 4", "--random-input-len 16 --random-output-len 4"),
        ("--compat vllm-0.11 --input-len 16", "--random-input-len 16 --dataset-rule vllm-0.11"),
        (
            "--compat sglang --dataset-name random --random-input-len 16 --random-output-len 4",
            "--random-input-len 1:16 --random-output-len 1:4 --seed 42",
        ),
    ],
)
def test_dataset_accepts_command_lines_of_other_tools(
    theirs: str, ours: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for flags in (theirs, ours):
        assert (
            dispatch(
                [
                    "dataset",
                    "--tokenizer",
                    TOKENIZER,
                    "--num-prompts",
                    "20",
                    "--json",
                    *flags.split(),
                ]
            )
            == 0
        )
        shown.append(json.loads(capsys.readouterr().out))
    assert shown[0] == shown[1]


def test_a_cut_off_file_is_warned_of_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
        str(tmp_path / "s.json"),
        "--num-prompts",
        "4",
    ]
    assert dispatch(["dataset", *flags, "--tokenizer", TOKENIZER]) == 0
    assert (
        "the file is truncated: only its 2 complete conversations are used"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("arguments", "field", "remedy"),
    [
        (["--numprompts", "3"], "--numprompts", "did you mean --num-prompts?"),
        (["--num-prompts", "0"], "--num-prompts", "1 to 50,000,000"),
        (["--nonsense"], "--nonsense", "loadgen dataset --help"),
        (["--base-url", "http://x"], "--base-url", "leave it out: nothing is sent here"),
        (["--rate", "3"], "--rate", "leave it out: nothing is sent here"),
        (["--request-rate", "3"], "--request-rate", "leave it out: nothing is sent here"),
        (["--config", "run.yaml"], "--config", "leave it out: nothing is sent here"),
        (["--class", "a:share=1"], "--class", "leave it out: nothing is sent here"),
        (["--gsp-num-groups", "3"], "--gsp-num-groups", "add --compat sglang"),
        (["--lora-assignment", "3"], "--lora-assignment", "leave it out: nothing is sent here"),
        (["fech"], "fech: unknown", "fetch, cache"),
        (["--dataset-name", "sharegpt"], "--dataset-path", "ShareGPT"),
        (["--export", "-", "--json", *FLAGS], "--export", "name a file"),
        (["--export", "/nowhere/x.jsonl", *FLAGS], "--export", "another path"),
        (["--export", "~nobody-at-home/x", *FLAGS], "--export", "another path"),
        (["--export", "/dev/full", *FLAGS], "--export", "No space left on device"),
        (["fetch"], "the following arguments are required: name", "loadgen dataset fetch --help"),
        (["fetch", "shraegpt"], "name", "sharegpt"),
        (["fetch", "sharegpt", "--to", "/proc/x"], "--to", "another folder"),
        (["cache", "--clean"], "--clean", "--clear"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(
    arguments: list[str], field: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(capsys, *arguments)
    assert line.startswith(f"loadgen dataset: {field}")
    assert remedy in line


def test_the_help_says_what_else_there_is() -> None:
    assert "loadgen dataset fetch sharegpt" in loadgen("dataset", "--help").stdout
    done = loadgen("dataset", "--help-all")
    assert done.returncode == 0
    assert "--random-prefix-len" in done.stdout
    assert not re.search(r"^ +--request-rate", done.stdout, re.MULTILINE)
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_dataset_imports_only_what_it_needs() -> None:
    code = (
        "import sys; from loadgen.cli.main import dispatch; dispatch(['dataset', *sys.argv[1:]]);"
        "sys.exit({'aiohttp', 'transformers', 'uvloop', 'rich'} & sys.modules.keys() "
        "or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *FLAGS],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""


def test_text_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "caf\\u00e9", "input_tokens": 2, "output_tokens": 2}\n')
    command = [*LOADGEN, "dataset", "--dataset-name", "jsonl", "--dataset-path", str(rows)]
    done = subprocess.run(
        command,
        env=environment() | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    assert b"caf\\xe9\n" in done.stdout


# -- exported


def test_an_exported_file_holds_every_prompt_for_its_owner_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    assert dispatch(["dataset", *FLAGS, "--export", str(path)]) == 0
    assert path.read_bytes() == b"".join(rows())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"--dataset-name jsonl --dataset-path {path}" in capsys.readouterr().out


def test_fewer_prompts_than_asked_leave_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.jsonl").write_text("before")
    monkeypatch.setattr(
        RandomDataset, "prompts", lambda self, count: iter([Prompt("one", 1, 1, "0")])
    )
    assert "--num-prompts: 2 " in refusal(
        capsys, *FLAGS, "--num-prompts", "2", "--export", str(tmp_path / "rows.jsonl")
    )
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_exported_rows_are_sent_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    told = []
    for flags in (
        [*FLAGS, "--export", str(path)],
        ["--dataset-name", "jsonl", "--dataset-path", str(path)],
    ):
        assert dispatch(["dataset", *flags, "--num-prompts", "20", "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0]["hashes"]["prompts"] == told[1]["hashes"]["prompts"]
    assert told[0]["percentiles"] == told[1]["percentiles"]


def test_rows_on_stdout_are_alone_there() -> None:
    done = loadgen("dataset", *FLAGS, "--export", "-")
    assert done.stdout.encode() == b"".join(rows())
    assert done.stderr.startswith("Data set\n")


def test_reader_of_only_the_first_row_causes_no_error() -> None:
    with start("dataset", *LONG, "--num-prompts", "200", "--export", "-", "--quiet") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["input_tokens"] == 100_000
        process.stdout.close()
        said = process.stderr.read()
        assert "loadgen dataset: " not in said
        assert "Traceback" not in said
        assert process.wait(60) == 0


def test_a_disk_that_is_full_is_told_and_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("before")
    limited = [
        "sh",
        "-c",
        'ulimit -f 1; exec "$@"',
        "sh",
        *LOADGEN,
        "dataset",
        *FLAGS,
        "--num-prompts",
        "1000",
    ]
    command = [*limited, "--export", "rows.jsonl"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "loadgen dataset: --export: rows.jsonl cannot be written (File too large); choose another "
        "path"
    ]
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_an_interrupt_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("before")
    with start("dataset", *LONG, "--export", "rows.jsonl", cwd=tmp_path) as process:
        hear(
            process,
            lambda line: line.startswith("loadgen: preparing prompts: ") and " left" in line,
        )
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith("loadgen dataset: interrupted\n")
    assert "Traceback" not in err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


# -- fetched


@pytest.fixture
def published(server, monkeypatch: pytest.MonkeyPatch) -> object:  # type: ignore[no-untyped-def]
    """A server of a small file in the place of the published one."""
    monkeypatch.setattr(download, "SHAREGPT", PUBLISHED)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    return server


def test_a_fetched_file_is_told_with_its_hash_and_how_to_send_it(
    published: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["dataset", "fetch", "sharegpt", "--to", str(tmp_path)]) == 0
    path = tmp_path / "set.json"
    assert path.read_bytes() == CONTENT
    assert capsys.readouterr().out == (
        f"{path}: 1,024,000 bytes\nSHA-256 {SHA256}\nto send it: --dataset-name sharegpt "
        f"--dataset-path {path}\n"
    )
    assert dispatch(["dataset", "fetch", "sharegpt", "--to", str(tmp_path)]) == 0
    assert f"{path}: 1,024,000 bytes, already complete\n" in capsys.readouterr().out


def test_a_fetch_that_fails_is_one_line(
    published, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # type: ignore[no-untyped-def]
    published.faults = [404]
    assert "404 Not Found; set HTTPS_PROXY" in refusal(
        capsys, "fetch", "sharegpt", "--to", str(tmp_path)
    )


def test_an_interrupted_fetch_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "fetch", interrupted)
    assert dispatch(["dataset", "fetch", "sharegpt", "--to", str(tmp_path)]) == 130
    assert "run the same command again" in capsys.readouterr().err


def test_progress_of_a_fetch_counts_only_what_came_by_this_call() -> None:
    coming = dataset._Download(quiet=True)
    coming.show(400_000_000, 673_000_000)
    coming.show(410_000_000, 673_000_000)
    assert coming._text_of(410_000_000, 2.0) == "fetching: 410.0 of 673.0 MB, 5.0 MB/s, 0:53 left"


# -- kept


def test_the_cache_is_shown_and_cleared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cleared = []
    monkeypatch.setattr(prompt_cache, "folder", lambda: Path("/kept"))
    monkeypatch.setattr(prompt_cache, "clear", lambda: cleared.append(True))
    monkeypatch.setattr("time.time", lambda: 1e9)
    new = prompt_cache.Entry(Path("/kept/0123456789abcdef.rows"), "prose", 10, 100_000, 1e9 - 20)
    old = prompt_cache.Entry(
        Path("/kept/123456789abcdef0.rows"), "sharegpt", 1000, 2_500_000, 1e9 - 7200
    )
    monkeypatch.setattr(prompt_cache, "entries", lambda: [new, old])
    assert dispatch(["dataset", "cache"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 entries, 2.6 MB, in /kept",
        "data set  prompts    size  last used  file",
        "prose          10  0.1 MB   20 s ago  0123456789ab…",
        "sharegpt    1,000  2.5 MB    2 h ago  123456789abc…",
    ]
    assert not cleared
    assert dispatch(["dataset", "cache", "--clear"]) == 0
    assert capsys.readouterr().out == "deleted 2 entries, 2.6 MB, from /kept\n"
    assert cleared


def test_a_cache_that_cannot_be_cleared_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(prompt_cache, "clear", refuse)
    assert "Permission denied; delete the folder by hand" in refusal(capsys, "cache", "--clear")
