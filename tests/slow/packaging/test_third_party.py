"""A data set and an API of another package are found, used and named like built-in ones."""

import http.server
import json
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command_line import environment
from tests.helpers.endpoint_guide import BLOCKS
from tests.helpers.source import ROOT

DATASET = ROOT / "examples" / "custom_dataset.py"
SIGV4 = ROOT / "examples" / "sigv4"
TOKENIZER = ROOT / "engines" / "sim" / "tokenizer.json"
PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "sums-prompts"
version = "1.0"

[project.entry-points."loadgen.datasets"]
sums = "custom_dataset:Sums"

[tool.setuptools]
py-modules = ["custom_dataset"]
"""


def installed(files: dict[str, str], folder: Path) -> str:
    """Install a package of these files, and return the folder in which its modules are found."""
    source, site = folder / "source", folder / "site"
    source.mkdir()
    for name, text in files.items():
        (source / name).write_text(text)
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]
    done = subprocess.run(
        [*install, "--target", site, source],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return str(site)


def measured(
    site: str, folder: Path, *flags: str, env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the result of `loadgen run` where the package is installed."""
    done = subprocess.run(
        [sys.executable, "-m", "loadgen", "run", "--json", *flags],
        cwd=folder,
        env=environment() | {"PYTHONPATH": f"{site}:{ROOT}"} | {**(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.timeout(300)
def test_the_data_set_of_the_guide_is_installed_and_measured(tmp_path: Path) -> None:
    files = {DATASET.name: DATASET.read_text(), "pyproject.toml": PROJECT}
    flags = "--engine sim --dataset-name sums --num-prompts 5 --rate 100 --dataset-arg digits=9"
    result = measured(installed(files, tmp_path), tmp_path, *flags.split())
    assert result["completed"] == 5
    assert result["loadgen"]["provenance"]["settings"]["dataset_arg"] == ["digits=9"]
    prompts = result["loadgen"]["provenance"]["prompts"]
    assert (prompts["name"], prompts["distinct"]) == ("sums", 5)
    assert prompts["rule"] == "two numbers of 9 digits"


class TgiServer(http.server.BaseHTTPRequestHandler):
    """Text Generation Inference, with the answer of the guide to every request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._reply("application/json", b'{"data": [{"id": "tgi"}]}')

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert (self.path, asked["parameters"]["max_new_tokens"]) == ("/generate_stream", 3)
        answer = re.search(
            r'^ANSWER = b"""(.*?)^"""', BLOCKS["test_loadgen_tgi.py"], re.MULTILINE | re.DOTALL
        )
        assert answer is not None
        self._reply("text/event-stream", answer[1].replace("\\\n", "").encode())

    def log_message(self, *args: Any) -> None:
        """Keep the test's output free of requests."""

    def _reply(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.timeout(300)
def test_the_api_of_the_guide_is_installed_and_measured(tmp_path: Path) -> None:
    site = installed(
        {name: BLOCKS[name] for name in ("loadgen_tgi.py", "pyproject.toml")}, tmp_path
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), TgiServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        lengths = [
            "--random-input-len",
            "4",
            "--random-output-len",
            "3",
            "--tokenizer",
            str(TOKENIZER),
        ]
        url = f"http://127.0.0.1:{server.server_address[1]}"
        result = measured(
            site, tmp_path, "--backend", "tgi", "--base-url", url, "--num-prompts", "5", *lengths
        )
        server.shutdown()
    assert (result["backend"], result["completed"], result["total_output_tokens"]) == ("tgi", 5, 15)
    assert result["loadgen"]["finish_reasons"] == {"length": 5}


class Signed(http.server.BaseHTTPRequestHandler):
    """A server that answers signed requests alone, with one token."""

    protocol_version = "HTTP/1.1"
    credential = re.compile(
        r"AWS4-HMAC-SHA256 Credential=id/\d{8}/us-west-2/bedrock/aws4_request, "
        r"SignedHeaders=host;x-amz-date, Signature=[0-9a-f]{64}"
    )

    def do_GET(self) -> None:
        self._reply(b'{"data": [{"id": "m"}]}')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        event = json.dumps({"choices": [choice], "usage": usage})
        self._reply(f"data: {event}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")

    def log_message(self, *args: Any) -> None:
        """Keep the test's output free of requests."""

    def _reply(self, body: bytes, kind: str = "application/json") -> None:
        is_signed = self.credential.fullmatch(self.headers.get("Authorization", ""))
        self.send_response(200 if is_signed else 403)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.timeout(300)
def test_the_api_of_the_example_signs_all_requests(tmp_path: Path) -> None:
    site = installed(
        {path.name: path.read_text() for path in SIGV4.iterdir() if path.is_file()}, tmp_path
    )
    keys = {"ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "secret", "REGION": "us-west-2"}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Signed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        flags = f"--backend aws-chat --base-url {url} --num-prompts 5 --tokenizer built-in".split()
        env = {f"AWS_{name}": value for name, value in keys.items()}
        result = measured(site, tmp_path, *flags, env=env)
        server.shutdown()
    assert (result["backend"], result["completed"]) == ("aws-chat", 5)
