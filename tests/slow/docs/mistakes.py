"""docs/mistakes.md: what is printed when something was got wrong; `python -m
tests.slow.docs.mistakes` makes its sections.

Each is made for real, in a folder of its own, against the servers of `servers`.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from loadgen.testing.process import started
from loadgen.util.machine import usable_cores
from tests.helpers.command_line import TOKENIZER, environment, interrupt, served, start
from tests.helpers.console_lines import unwrapped
from tests.helpers.documents import between, found_between
from tests.helpers.source import ROOT
from tests.helpers.warm_command import called
from tests.slow.docs.playing import MODEL, hub_cache

DOCUMENT = ROOT / "docs" / "mistakes.md"
BEGIN, END = (
    "<!-- mistakes: made by python -m tests.slow.docs.mistakes -->",
    "<!-- end of mistakes -->",
)
REFUSED = 2  # the exit code that the page leaves out
PROGRESS = re.compile(r"loadgen: (starting|preparing|connecting|warming up|waiting|\d|.*\bended\b)")
SHELL = re.compile("[|&;<>]")  # what only a shell understands
SERVER = "--base-url http://127.0.0.1:8000"
FEW = "--num-prompts 10 --random-input-len 16 --random-output-len 4"
PORTS = {"8000": "sim", "8001": "faulty", "8002": "guarded", "8009": "nobody"}


@dataclass(frozen=True)
class Mistake:
    """Something that is easily got wrong.

    Attributes:
        what: In a word.
        typed: The command; ports are those of PORTS.
        shows: Which lines of what it prints tell it, as regular expressions; none: all that it says
            on stderr.
        files: What lies in its folder.
        presses: How often Ctrl-C is pressed, once requests are in flight.
    """

    what: str
    typed: str
    shows: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    presses: int = 0


@dataclass(frozen=True)
class Told:
    """What a mistake prints.

    Attributes:
        what: The mistake, in a word.
        typed: The command.
        printed: Its lines.
        code: The exit code.
    """

    what: str
    typed: str
    printed: tuple[str, ...]
    code: int

    def section(self) -> str:
        """Its section of the page."""
        block = "\n".join(("```text", f"$ {self.typed}", *self.printed, "```"))
        ending = "" if self.code == REFUSED else f"\n\nExit code {self.code}."
        return f"## {self.what}\n\n{block}{ending}"


# The answer, what to do, and what the server says.
FAILED = ("^FAILED: ", "^next: ", r"^[\w() ]+: first seen at request 0")
MISTAKES = (
    Mistake("No command", "loadgen --rate 10"),
    Mistake("The command of `vllm bench serve`", "loadgen bench serve --num-prompts 10"),
    Mistake("A server, and no flag", "loadgen run http://127.0.0.1:8000"),
    Mistake("The wrong port: nothing listens", "loadgen run --base-url http://127.0.0.1:8009"),
    Mistake(
        "`https` where the server speaks `http`", "loadgen run --base-url https://127.0.0.1:8002"
    ),
    Mistake("A URL without `http://` and a port", "loadgen run --base-url gpu-box"),
    Mistake(
        "A wrong path, as one without `/v1`",
        f"loadgen run {SERVER} --endpoint /chat/completions {FEW}",
        shows=FAILED,
    ),
    Mistake(
        "A model that the server does not have", f"loadgen run {SERVER} --model Qwen/Qwen3-80B"
    ),
    Mistake("No key, or a wrong one", "loadgen run --base-url http://127.0.0.1:8002"),
    Mistake("A key file that does not exist", f"loadgen run {SERVER} --api-key @key.txt"),
    Mistake("A misspelled flag", f"loadgen run {SERVER} --num-promts 10"),
    Mistake("A flag of another tool", f"loadgen run {SERVER} --concurrency 10"),
    Mistake("A duration with an unknown unit", f"loadgen run {SERVER} --rate 10 --duration 30sec"),
    Mistake("A duration, and no rate", f"loadgen run {SERVER} --duration 30"),
    Mistake("An unknown data set", f"loadgen run {SERVER} --dataset-name sharegtp"),
    Mistake("No file for a data set", f"loadgen run {SERVER} --dataset-name sharegpt"),
    Mistake(
        "A file in another format",
        f"loadgen run {SERVER} --dataset-name jsonl --dataset-path prompts.jsonl",
        files={"prompts.jsonl": '{"question": "What is a prompt?"}\n'},
    ),
    Mistake(
        "A tokenizer that does not exist",
        f"loadgen run {SERVER} --tokenizer ./models/tokenizer.json",
    ),
    Mistake(
        "A tokenizer of the hub, and no network",
        f"HF_HUB_OFFLINE=1 loadgen run {SERVER} --tokenizer Qwen/Qwen3-4B",
    ),
    Mistake("A model file that does not exist", "loadgen run --engine llamacpp --model model.gguf"),
    Mistake(
        "Prompts longer than the server's context",
        f"loadgen run {SERVER} --num-prompts 10 --random-input-len 5000",
        shows=FAILED,
    ),
    Mistake("A misspelled limit", f'loadgen run {SERVER} --slo "ttft_p99<500sec"'),
    Mistake("A limit on an unknown metric", f'loadgen run {SERVER} --slo "latency_p99<5s"'),
    Mistake(
        "A folder that cannot be written",
        f"loadgen run {SERVER} --save-result --result-dir /proc/results",
    ),
    Mistake(
        "A disk that is full",
        f"loadgen run {SERVER} {FEW} --records /dev/full",
        shows=("is not complete",),
    ),
    Mistake(
        "More workers than cores",
        f"loadgen run {SERVER} {FEW} --workers 3 --quiet",
        shows=("--workers",),
    ),
    Mistake(
        "`--ray` without Ray",
        f"loadgen run {SERVER} --ray auto",
        files={"ray.py": "raise ModuleNotFoundError\n"},
    ),
    Mistake(
        "Too few files allowed for so many connections",
        f"ulimit -n 200; loadgen run {SERVER} --max-concurrency 500",
    ),
    Mistake(
        "An unknown key in a file",
        "loadgen run --config load.yaml",
        files={"load.yaml": "base-url: http://127.0.0.1:8000\nrequest-rat: 10\n"},
    ),
    Mistake(
        "A server that does not stream",
        "loadgen run --base-url http://127.0.0.1:8001 --tokenizer tokenizer.json --header "
        f"X-Fault=json-answer {FEW}",
        shows=FAILED,
    ),
    Mistake(
        "A server that dies in the middle",
        "loadgen run --base-url http://127.0.0.1:8001 --tokenizer tokenizer.json --header "
        f"X-Fault=rst:2 {FEW}",
        shows=FAILED,
    ),
    Mistake(
        "A proxy in the environment: not a mistake, loadgen ignores it",
        f"http_proxy=http://127.0.0.1:8009 loadgen run {SERVER} {FEW}",
        shows=("^Successful requests:",),
    ),
    Mistake(
        "Ctrl-C, twice",
        f"loadgen run {SERVER} --rate 20 --num-prompts 1000 --random-output-len 400",
        shows=("^PARTIAL",),
        presses=2,
    ),
    Mistake(
        "A report of another file",
        "loadgen report notes.json",
        files={"notes.json": '{"notes": []}\n'},
    ),
)


class Guarded(BaseHTTPRequestHandler):
    """A server that wants a key."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextlib.contextmanager
def servers() -> Iterator[dict[str, str]]:
    """The servers of PORTS: where each listens, by the port that stands for it."""
    guarded = ThreadingHTTPServer(("127.0.0.1", 0), Guarded)
    nobody = ThreadingHTTPServer(("127.0.0.1", 0), Guarded)
    nobody.server_close()
    threading.Thread(target=guarded.serve_forever, daemon=True).start()
    flags = [
        "--served-model-name",
        MODEL,
        "--max-model-len",
        "4096",
        "--max-num-batched-tokens",
        "8192",
    ]
    try:
        with served(*flags) as (sim, _), started("loadgen.testing.faulty") as faulty:
            found = {
                "sim": sim,
                "faulty": faulty.url,
                "guarded": f":{guarded.server_port}",
                "nobody": f":{nobody.server_port}",
            }
            yield {written: found[name].rpartition(":")[2] for written, name in PORTS.items()}
    finally:
        guarded.shutdown()
        guarded.server_close()


def told(mistake: Mistake, ports: dict[str, str], folder: Path) -> Told:
    """Make a mistake, in an empty folder; its ports are those that are written in the page."""
    (folder / "tokenizer.json").symlink_to(TOKENIZER)
    for name, text in mistake.files.items():
        (folder / name).write_text(_replaced(text, ports))
    typed = mistake.typed.replace("--workers 3", f"--workers {usable_cores() + 1}")
    code, output, errors = _made(mistake, _replaced(typed, ports), folder)
    lines = [
        line
        for line in unwrapped((output + errors if mistake.shows else errors).splitlines())
        if not PROGRESS.match(line)
    ]
    if mistake.shows:
        lines = [line for line in lines if any(re.search(shows, line) for shows in mistake.shows)]
    text = _replaced("\n".join(lines), {port: written for written, port in ports.items()})
    printed = tuple(" ".join(line.split()) for line in _steady(text, folder).splitlines())
    return Told(mistake.what, mistake.typed, printed, code)


def _made(mistake: Mistake, typed: str, folder: Path) -> tuple[int, str, str]:
    variables = environment() | {
        "HF_HOME": str(hub_cache(folder / "hub")),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
    }
    if mistake.presses:
        words = typed.split()[1:]
        run = start(*words, "--tokenizer", "tokenizer.json", cwd=folder)
        output, errors = interrupt(run, mistake.presses)
        return run.returncode, output, errors
    if SHELL.search(typed) or "ray.py" in mistake.files:  # which Python finds at its start
        done = subprocess.run(
            ["bash", "-c", typed],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    else:
        words = shlex.split(typed)
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        assert words[0] == "loadgen"
        done = called(words[1:], folder, variables, timeout_s=100)
    return done.returncode, done.stdout, done.stderr


def _replaced(text: str, ports: dict[str, str]) -> str:
    return re.sub(r"(?<=:)\d{4,5}\b", lambda match: ports.get(match[0], match[0]), text)


def _steady(text: str, folder: Path) -> str:
    """What is another text on every machine, in the words that the page has."""
    text = text.replace(f"{folder}/", "").replace(str(folder), ".")
    cores = usable_cores()
    text = text.replace(f"{cores + 1} processes share {cores} cores", "3 processes share 2 cores")
    text = re.sub(r"\((WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE);", "(WRONG_VERSION_NUMBER;", text)
    text = re.sub(r"measurement (VALID|SUSPECT: [^|]*(?= \|))", "measurement VALID", text)
    text = re.sub(r"\d+ cut off, \d+ never sent", "40 cut off, 960 never sent", text)
    return re.sub(
        r"\((Temporary failure in name resolution|No address .*?)\)",
        "(Name or service not known)",
        text,
    )


SECTION = re.compile(
    r"## (?P<what>.+)\n\n```text\n\$ (?P<typed>.+)\n(?P<printed>(?:.*\n)*?)```"
    r"(?:\n\nExit code (?P<code>\d+)\.)?"
)


def sections_of_the_page() -> dict[str, Told]:
    return {
        one["what"]: Told(
            one["what"],
            one["typed"],
            tuple(one["printed"].splitlines()),
            int(one["code"] or REFUSED),
        )
        for one in SECTION.finditer(found_between(DOCUMENT, BEGIN, END))
    }


def main() -> None:
    """Make every mistake, and write the sections."""
    sections = []
    with servers() as ports:
        for mistake in MISTAKES:
            with tempfile.TemporaryDirectory() as folder:
                sections.append(told(mistake, ports, Path(folder)).section())
            print(sections[-1])
    between(DOCUMENT, BEGIN, "\n\n".join(sections), END)


if __name__ == "__main__":
    main()
