"""Credentials go only to the server they are for."""

import asyncio
import os
import signal
import stat
from base64 import b64encode
from pathlib import Path
from typing import Any

import psutil
import pytest

from loadgen.cli import run_settings
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.features import capture
from loadgen.util.redaction import MARK, Redaction
from loadgen.workload.target import headers
from tests.helpers.hostile_server import KEY, OTHER, UNSAFE, echo, files, models, run_against
from tests.helpers.scripted_server import read_request


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    return path


# -- where they come from


def test_a_key_and_the_value_of_a_header_may_stand_in_files(key_file: Path) -> None:
    settings = run_settings.settings(
        {"api_key": f"@{key_file}", "header": (f"X-Key=@{key_file}", "X-Plain=a@b")}
    )
    assert headers(settings) == {"Authorization": f"Bearer {KEY}", "X-Key": KEY, "X-Plain": "a@b"}


def test_a_file_may_be_named_in_a_config_file_too(key_file: Path, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(f'api-key: "@{key_file}"\n')
    assert run_settings.settings({"config": str(tmp_path / "run.yaml")}).api_key == KEY


def test_a_pipe_will_do_as_it_is_read_once() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, KEY.encode())
        os.close(writing)
        assert run_settings.settings({"api_key": f"@/dev/fd/{reading}"}).api_key == KEY
    finally:
        os.close(reading)


@pytest.mark.parametrize("content", [None, "", "\n", f"{KEY}\nsecond line\n", "x" * 70_000])
def test_a_file_that_does_not_hold_one_line_is_refused_without_showing_it(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_text(content)
    for given in ({"api_key": f"@{path}"}, {"header": (f"X-Key=@{path}",)}):
        with pytest.raises(BadInput, match=r"--(api-key|header): @") as refused:
            run_settings.settings(given)
        assert KEY not in str(refused.value)


# -- where they do not go

SECRETS = ["--header", f"X-Tenant={OTHER}", "--num-prompts", "21", "--max-concurrency", "1"]


async def test_echoed_credentials_are_in_no_file_and_no_output(
    tmp_path: Path, key_file: Path
) -> None:
    kept = [
        "--save-result",
        "--save-detailed",
        "--records",
        "records.jsonl",
        "--capture",
        "all.jsonl",
    ]
    kept += ["--log-level", "debug", "--max-error-rate", "1", "--no-preflight"]
    async with run_against(echo(), tmp_path, "--api-key", f"@{key_file}", *SECRETS, *kept) as run:
        out, err = await run.communicate()
    assert run.returncode == 0, (out, err)
    said = files(tmp_path) | {"stdout": out, "stderr": err}
    assert any(name.endswith(".json") for name in said)
    assert "records.jsonl" in said
    del said[key_file.name]
    captured = capture.load(str(tmp_path / "all.jsonl")).responses
    said["captured"] = b"".join(data for response in captured for _, data in response.reads)
    for name, content in said.items():
        for secret in (KEY, KEY[: len(KEY) // 2], "9f8e7d6c"):
            assert secret.encode() not in content, name
    assert MARK.encode() in said["records.jsonl"]
    for stream in (out, err):
        assert not UNSAFE.search(stream.decode()), stream.decode()


async def test_a_run_that_is_stopped_shows_no_credentials(tmp_path: Path, key_file: Path) -> None:
    async with run_against(echo(), tmp_path, "--api-key", f"@{key_file}", *SECRETS) as run:
        out, err = await run.communicate()
    assert run.returncode == 2
    assert MARK.encode() in err
    for secret in (KEY, KEY[: len(KEY) // 2], "9f8e7d6c"):
        assert secret.encode() not in out + err


async def test_no_process_has_credentials_in_args_or_env(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while ask := await read_request(reader):
            if ask.method == "GET":
                writer.write(models("m"))
            else:
                assert KEY.encode() in ask.head
                asked.set()

    async with run_against(
        silent, tmp_path, "--duration", "60", "--rate", "5", "--no-preflight", OPENAI_API_KEY=KEY
    ) as run:
        await asyncio.wait_for(asked.wait(), 60)
        command = psutil.Process(run.pid)
        children = command.children(recursive=True)
        assert children
        for process in (command, *children):
            assert KEY not in f"{process.cmdline()} {process.environ()}"
        # Prompts may be confidential: nobody else may read them, and they do not outlive the run.
        (folder,) = (tmp_path / "tmp").glob("loadgen-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        run.send_signal(signal.SIGTERM)
        await asyncio.wait_for(run.communicate(), 60)
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_the_folder_of_prompts_is_removed_after_a_sigterm_while_they_are_made(
    tmp_path: Path,
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            writer.write(models("m"))

    async with run_against(serve, tmp_path, "--num-prompts", "1000000") as run:
        async with asyncio.timeout(60):
            while not list((tmp_path / "tmp").glob("loadgen-*")):
                await asyncio.sleep(0.01)
        run.send_signal(signal.SIGTERM)
        await asyncio.wait_for(run.communicate(), 60)
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_a_key_on_the_command_line_is_pointed_out(tmp_path: Path) -> None:
    async with run_against(echo(), tmp_path, "--api-key", KEY, "--num-prompts", "1") as run:
        _, err = await run.communicate()
    assert b"WARNING: --api-key: other users" in err
    assert KEY.encode() not in err


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"api_key": KEY}, "--api-key: "),
        ({"header": (f"X-Key={KEY}",)}, "--header X-Key: "),
        ({"base_url": f"http://me:{KEY}@a"}, "--base-url "),
        ({"base_url": ("http://a", f"http://me:{KEY}@b")}, "--base-url "),
    ],
)
def test_each_flag_that_shows_a_secret_is_pointed_out(
    given: dict[str, Any], flag: str, caplog: pytest.LogCaptureFixture
) -> None:
    run_settings.warn_of_visible(given)
    (warning,) = caplog.messages
    assert warning.startswith(flag)
    assert KEY not in warning


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"api_key": "@key"},
        {"api_key": "EMPTY"},
        {"header": ("X-Key=@key", "X-Region=europe-west", "no value")},
        {"base_url": "http://a"},
    ],
)
def test_flags_without_a_secret_are_not_pointed_out(
    given: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    run_settings.warn_of_visible(given)
    assert caplog.messages == []


# -- redaction


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"api_key": KEY}, f"no such key: {KEY}"),
        ({"api_key": KEY}, f"authorization: Bearer {KEY}"),
        ({"header": ("Authorization=Token  abcdef12",)}, "token abcdef12"),
        ({"header": ('X-Key=say "hello"',)}, 'was {"a": "say \\"hello\\""}'),
        ({"header": ("X-Key=a/b c&d2",)}, "?a=a%2Fb%20c%26d2"),
        ({"base_url": "http://me:pass%20word@a"}, "user me, pass word"),
        ({"base_url": "http://me:pass%20word@a"}, "Basic bWU6cGFzcyB3b3Jk"),
        ({"api_key": KEY}, f"cut off {KEY[:-1]}"),
        ({"api_key": KEY}, f"cut off {KEY[:4]}"),
        ({"api_key": KEY}, f"the key {KEY[:9]}... is none"),
        ({"api_key": KEY}, f"the key {KEY[:9]}*** and {KEY[:8]}, again"),
        ({"api_key": KEY}, f"in capitals: {KEY.upper()}"),
        ({"header": ("X-A=abcdef12 hello",)}, f"encoded: {b64encode(b'abcdef12 hello').decode()}"),
        ({"header": ("Cookie=a=1; id=abcdef12",)}, "your id is abcdef12"),
        ({"base_url": "http://me:word@a"}, "the password word"),
    ],
)
def test_a_credential_is_taken_out_however_it_is_spelled(
    settings: dict[str, object], text: str
) -> None:
    redacted = Redaction(headers(RunSettings(**settings)))(text)  # type: ignore[arg-type]
    assert MARK in redacted
    for trace in (KEY[:4], "abcdef12", "hello", "word", "bWU6", "a%2Fb", "YWJjZGVm"):
        assert trace.lower() not in redacted.lower()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"api_key": KEY}, "Bearer of bad news: the model is loading; it is a Bear"),
        ({"api_key": "EMPTY"}, "prompt is EMPTY"),
        ({"api_key": "no-key-required"}, "no-key-required"),
        ({"api_key": "ollama"}, "this is ollama"),
        ({"header": ("X-Foo=stop",)}, "stop"),
        ({"header": ("X-Region=europe-west",)}, "in europe-west"),
        ({"header": ("X-Key=abc",)}, "abc"),
        ({}, "anything"),
    ],
)
def test_text_without_credentials_is_unchanged(given: dict[str, Any], text: str) -> None:
    assert Redaction(headers(RunSettings(**given)))(text) == text


def test_the_values_of_other_headers_count_where_they_look_random() -> None:
    assert Redaction({"X-Tenant": "9f8e7d6c"})("for 9f8e7d6c") == f"for {MARK}"
