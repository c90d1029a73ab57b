"""Playing: what a page shows is done, block after block, in a folder that looks like a clone.

What is changed of a block before it is run, and nothing else:

- A port from 8000 to 8099 is a free one, the same in all of the page. Where nothing of the page
  listens at http://127.0.0.1:8000 when a block names it, the simulator does, and says that it is
  the model MODEL.
- A run sends MAX_PROMPTS requests at most, and its requests become due for MAX_SECONDS at most, or
  for as long in each phase of a profile.

The hub is not asked: its cache has the simulator's tokenizer under the name of MODEL.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import yaml

from loadgen.engines.launch import ports
from tests.helpers.command_line import TOKENIZER, environment, served
from tests.helpers.source import ROOT
from tests.slow.docs.blocks import Block

MODEL = "Qwen/Qwen3-8B"
MAX_PROMPTS, MAX_SECONDS = 20, 1
BLOCK_S = 60.0  # that a block may take
GRACE_S = 15.0  # that what was started for a page may take to end
COMMIT = "0" * 40
PORT = re.compile(r"(?<=:)80\d\d\b|(?<=--port )80\d\d\b|(?<=--port=)80\d\d\b|(?<=port=)80\d\d\b")

PROMPTS = re.compile(r"(?:(?<=num-prompts )|(?<=num_prompts=)|(?<=max-requests ))\d+")
SECONDS = re.compile(r"(?<=duration[ =])\d+|(?<=\d@)\d+(?=s)")
PROGRAM = """
import ast, asyncio, inspect, sys
code = compile(open(sys.argv[1]).read(), sys.argv[1], "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
made = eval(code, {"__name__": "__main__"})
if inspect.iscoroutine(made):
    async def main():
        await made
    asyncio.run(main())
"""


class Play:
    """A page under way.

    Args:
        folder: In which its blocks are run: empty.
        cache: The hub's, with a tokenizer in it.
    """

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder = folder
        self._cleanup = contextlib.ExitStack()
        self._ports: dict[str, int] = {}
        self._python = ""  # of the blocks that the next one may continue
        for name in ("examples", "engines", "tests"):
            (folder / name).symlink_to(ROOT / name)
        self._environment = environment() | {
            "HOME": str(folder),
            "HF_HOME": str(cache),
            "HF_HUB_OFFLINE": "1",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(folder),
        }

    def __enter__(self) -> "Play":
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def block(self, block: Block) -> None:
        """Do what a block shows, unless it says that something else must.

        Raises:
            AssertionError: It does not do what it says; the message has its place and its output.
        """
        if "needs" in block.marks or "run by" in block.marks:
            return
        if name := block.marks.get("file"):
            (self._folder / name).write_text(self._meant(block.text))
            self._serve(block.text)
        elif block.language == "bash" and "background" in block.marks:
            self._go_on(block)
        elif block.language == "bash":
            self._serve(block.text)
            self._run(block, ["bash", "-euo", "pipefail", "-c", self._meant(block.text)])
        elif block.language == "python":
            self._python = (self._python if "continues" in block.marks else "") + block.text
            self._serve(block.text)
            self._run(block, self._python_command())
        self._read(block)

    def _meant(self, text: str) -> str:
        """A block's text as it is run."""
        text = PORT.sub(lambda match: str(self._port(match[0])), text)
        text = PROMPTS.sub(lambda match: str(min(int(match[0]), MAX_PROMPTS)), text)
        text = text.replace("loadgen run ", "loadgen run --allow-few ")  # of so few requests
        return SECONDS.sub(lambda match: str(min(int(match[0]), MAX_SECONDS)), text)

    def _port(self, written: str) -> int:
        if written not in self._ports:
            reserved = ports.reserve("127.0.0.1")  # one that no outgoing connection gets
            reserved.release()
            self._ports[written] = reserved.port
        return self._ports[written]

    def _serve(self, text: str) -> None:
        """Let the simulator listen wherever the text asks a server and nobody does."""
        for written in dict.fromkeys(PORT.findall(text)):
            port = self._port(written)
            if not _listens(port):
                flags = ["--port", str(port), "--served-model-name", MODEL]
                self._cleanup.enter_context(served(*flags))

    def _python_command(self) -> list[str]:
        text = self._meant(self._python)
        program = self._folder / "test_block.py"
        program.write_text(text)
        if re.search(r"^(async )?def test_", text, re.MULTILINE):
            alone = [
                "-q",
                "-c",
                os.devnull,
                "--rootdir",
                str(self._folder),
                "-p",
                "no:cacheprovider",
            ]
            return [sys.executable, "-m", "pytest", *alone, str(program)]
        return [sys.executable, "-c", PROGRAM, str(program)]

    def _run(self, block: Block, command: list[str]) -> None:
        process = self._started(command)
        try:
            said, _ = process.communicate(timeout=BLOCK_S)
        except subprocess.TimeoutExpired:
            said = _end(process)
            raise AssertionError(
                f"{block.place}: did not end within {BLOCK_S:g} s\n{said}"
            ) from None
        wanted = int(block.marks.get("exit", 0))
        assert process.returncode == wanted, (
            f"{block.place}: exit code {process.returncode}, not {wanted}\n{said}"
        )

    def _go_on(self, block: Block) -> None:
        """Start a server, and wait until it listens at the port that it is told."""
        written = PORT.findall(block.text)
        assert written, f"{block.place}: what goes on in the background is told a --port"
        process = self._started(["bash", "-euo", "pipefail", "-c", self._meant(block.text)])
        self._cleanup.callback(_end, process)
        until = time.monotonic() + BLOCK_S
        while not _listens(self._port(written[-1])):
            if process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"{block.place}: nothing listens\n{_end(process)}")
            time.sleep(0.05)

    def _started(self, command: list[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def _read(self, block: Block) -> None:
        """What is no command is at least what it says it is."""
        try:
            match block.language:
                case "yaml":
                    yaml.safe_load(block.text)
                case "json":
                    json.loads(block.text)
                case "toml":
                    tomllib.loads(block.text)
        except (yaml.YAMLError, ValueError) as error:
            raise AssertionError(f"{block.place}: no {block.language}: {error}") from error


def hub_cache(folder: Path) -> Path:
    """A cache of the hub's below the folder, which has a tokenizer for MODEL."""
    home = folder / f"hub/models--{MODEL.replace('/', '--')}"
    snapshot = home / "snapshots" / COMMIT
    for made in (snapshot, home / "refs"):
        made.mkdir(parents=True)
    shutil.copy(TOKENIZER, snapshot)
    (home / "refs/main").write_text(COMMIT)
    return folder


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def _end(process: "subprocess.Popen[str]") -> str:
    """End a process and whatever it has started; returns what it has said."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        said, _ = process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
    return said
