"""Children that a command forks ahead: what they inherit, and how they end."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

CHILD = """
import os, signal, sys

def run():
    data = sys.stdin.buffer.readline()
    has_default = signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    facts = [os.getsid(0) == os.getpid(), "OPENAI_API_KEY" in os.environ, has_default]
    sys.stdout.buffer.write(repr(facts).encode() + b"\\n" + data)
    print("to stderr", file=sys.stderr)
    if data == b"fail\\n":
        raise ValueError("on purpose")
    if data == b"code\\n":
        sys.exit(3)
"""
PARENT = """
import asyncio, sys
from loadgen.util import forked_child

print("written before the fork", end="")
{forks}

async def main(word):
    from loadgen.util.child_process import ChildProcess
    async with ChildProcess("a_child") as child:
        child._stdin.write(word + b"\\n")
        own = await child._stdout.readline()
        await child._stdout.readline()
        return own.decode().strip(), await child.wait_ended()

for word in {words}:
    print(asyncio.run(main(word)))
"""


def parent(folder: Path, forks: str, *words: bytes) -> "subprocess.CompletedProcess[str]":
    (folder / "a_child.py").write_text(CHILD)
    script = textwrap.dedent(PARENT).format(forks=forks, words=list(words))
    environment = os.environ | {"PYTHONPATH": str(folder), "OPENAI_API_KEY": "secret"}
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_child_leads_a_session_and_has_no_key_and_no_handlers(tmp_path: Path) -> None:
    done = parent(tmp_path, "forked_child.fork_ahead('a_child')", b"word")
    assert done.stdout == "written before the fork('[True, False, True]', 'ended with code 0')\n", done.stderr
    assert done.stderr == "to stderr\n"


def test_each_child_is_used_once(tmp_path: Path) -> None:
    done = parent(tmp_path, "forked_child.fork_ahead('a_child'); forked_child.fork_ahead('a_child')", b"one", b"code")
    assert [line.rpartition(", ")[2] for line in done.stdout.splitlines()] == [
        "'ended with code 0')",
        "'ended with code 3')",
    ]


def test_error_of_a_child_is_shown_and_is_its_exit_code(tmp_path: Path) -> None:
    done = parent(tmp_path, "forked_child.fork_ahead('a_child')", b"fail")
    assert "'ended with code 1'" in done.stdout
    assert done.stderr.endswith("ValueError: on purpose\n")


def test_child_that_is_not_used_ends_with_its_parent(tmp_path: Path) -> None:
    forks = "forked_child.fork_ahead('a_child'); print(forked_child._waiting['a_child'][0].pid)"
    done = parent(tmp_path, forks)
    pid = int(done.stdout.removeprefix("written before the fork"))
    assert not Path(f"/proc/{pid}").exists()
