"""Children that a command forks ahead: what they inherit, and how they end."""

import os
import subprocess
import sys
from pathlib import Path

CHILD = """
import os, signal, sys
from loadgen.util import child_process

def run():
    word = child_process.decode(sys.stdin.buffer.readline())
    facts = {
        "leads a session": os.getsid(0) == os.getpid(),
        "has the key": "OPENAI_API_KEY" in os.environ,
        "has handlers": signal.getsignal(signal.SIGINT) is not signal.SIG_DFL,
        "blocks signals": signal.pthread_sigmask(signal.SIG_BLOCK, ()) != set(),
    }
    sys.stdout.buffer.write(child_process.encode((word, facts)))
    print("to stderr", file=sys.stderr)
    if word == "fail":
        raise ValueError("on purpose")
    if word == "code":
        sys.exit(3)
"""
PARENT = """
import asyncio, sys
from loadgen.util import forked_child
from loadgen.util.child_process import ChildProcess

children, *words = sys.argv[1:]
print("written before the fork", end="; ")
for _ in range(int(children)):
    forked_child.fork_ahead("a_child")
print([child.pid for child in forked_child._waiting["a_child"]])

async def main(word):
    async with ChildProcess("a_child") as child:
        child.send(word)
        return [message async for message in child.messages()], await child.wait_ended()

for word in words:
    print(asyncio.run(main(word)))
"""
FACTS = {
    "leads a session": True,
    "has the key": False,
    "has handlers": False,
    "blocks signals": False,
}


def parent(folder: Path, children: int, *words: str) -> "subprocess.CompletedProcess[str]":
    (folder / "a_child.py").write_text(CHILD)
    command = [sys.executable, "-c", PARENT, str(children), *words]
    environment = os.environ | {"PYTHONPATH": str(folder), "OPENAI_API_KEY": "secret"}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_child_leads_a_session_and_has_no_key_and_no_handlers(tmp_path: Path) -> None:
    done = parent(tmp_path, 1, "word")
    before, answer = done.stdout.splitlines()
    assert before.count("written before the fork") == 1
    assert answer == str(([("word", FACTS)], "ended with code 0")), done.stderr
    assert done.stderr == "to stderr\n"


def test_each_child_is_used_once(tmp_path: Path) -> None:
    done = parent(tmp_path, 2, "one", "code")
    _, one, other = done.stdout.splitlines()
    assert "ended with code 0" in one
    assert "ended with code 3" in other


def test_error_of_a_child_is_shown_and_is_its_exit_code(tmp_path: Path) -> None:
    done = parent(tmp_path, 1, "fail")
    assert "ended with code 1" in done.stdout
    assert done.stderr.endswith("ValueError: on purpose\n")


def test_child_that_is_not_used_ends_with_its_parent(tmp_path: Path) -> None:
    done = parent(tmp_path, 2, "one")
    pids = [
        int(pid) for pid in done.stdout.splitlines()[0].partition("[")[2].rstrip("]").split(",")
    ]
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
