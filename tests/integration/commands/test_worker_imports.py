"""What a process that measures imports: no more than it needs, as each import delays the first
request.
"""

import os
import subprocess
from pathlib import Path

from tests.helpers.command_line import LOADGEN, environment

# Read by the command at its start: a process that measures, which is forked from it, can neither
# have nor import these.
BLOCKED = """
import sys

NAMES = {"hdrh", "jinja2", "numpy", "prometheus_client", "rich", "tokenizers", "transformers"}

class Guard:
    def find_spec(self, name, path=None, target=None):
        with open("/proc/self/comm") as file:
            measures = file.read() == "loadgen-worker\\n"
        if measures and (found := NAMES & {name, *sys.modules}):
            raise ImportError(f"a process that measures has {found}")

sys.meta_path.insert(0, Guard())
"""


def test_process_that_measures_imports_no_heavy_package(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKED)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    load = [
        "--engine",
        "sim",
        "--rate",
        "100",
        "--num-prompts",
        "20",
        "--random-output-len",
        "2",
        "--quiet",
    ]
    done = subprocess.run(
        [*LOADGEN, "run", *load, "--records", str(tmp_path / "records.jsonl")],
        env=environment() | {"PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
