"""How far the settings of a command are from its command line to its first connection."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.helpers.command_line import LOADGEN, SHORT, environment, served

MOST_FUNCTIONS = 300  # of Python that a plain command calls before its first connection
MOST_SETTINGS = 3  # times that it makes `RunSettings`, in all of its processes
# Read by Python at its start, in the command and in what is forked from it: writes a line for each
# first call of a function, for each connection, and for each `RunSettings`.
TRACE = """
import inspect, json, os, socket, sys
import loadgen

INNER = ("comp>", "expr>")  # comprehensions and generators are no functions; nor bodies of classes
FOLDER = os.path.dirname(loadgen.__file__)
lines = os.open(os.environ["TRACED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
seen = set()

def write(kind, what):
    os.write(lines, (json.dumps([kind, what]) + "\\n").encode())

def called(frame, event, _):
    code = frame.f_code
    if event == "call" and code not in seen and code.co_filename.startswith(FOLDER):
        seen.add(code)
        if code.co_flags & inspect.CO_OPTIMIZED and code.co_name[-5:] not in INNER:
            write("function", code.co_filename + ":" + code.co_qualname)

def audited(event, arguments):
    if event == "socket.connect" and arguments[0].family != socket.AF_UNIX:
        write("connection", repr(arguments[1]))

def set_fields(settings, values, changes):
    if not vars(settings):
        write("settings", sorted(changes))
    take(settings, values, changes)

sys.addaudithook(audited)
sys.setprofile(called)

from loadgen.config.settings import RunSettings

take, RunSettings._set = RunSettings._set, set_fields
"""


@pytest.mark.skipif("COVERAGE_RUN" in os.environ, reason="the run is profiled otherwise")
def test_few_functions_and_few_settings_lead_from_a_command_line_to_its_run(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(TRACE)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    traced = {"PYTHONPATH": path, "TRACED": str(tmp_path / "traced")}
    with served() as (url, _):
        command = [*LOADGEN, "run", "--base-url", url, "--model", "sim", "--num-prompts", "5"]
        done = subprocess.run(
            [*command, *SHORT],
            env=environment() | traced,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "traced").read_text().splitlines()]
    first = next(number for number, (kind, _) in enumerate(lines) if kind == "connection")
    functions = {what for kind, what in lines[:first] if kind == "function"}
    settings = [what for kind, what in lines if kind == "settings"]
    assert 100 < len(functions) <= MOST_FUNCTIONS
    assert 0 < len(settings) <= MOST_SETTINGS, settings
