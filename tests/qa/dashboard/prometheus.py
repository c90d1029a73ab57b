"""Prometheus: the one that is installed, or Debian's package; it scrapes a run once a second and
answers queries.
"""

import contextlib
import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.engines.environments import CACHE, CannotBeMade, install
from tests.qa.debian import Run, unpacked

FOLDER = CACHE.parent / "prometheus"
REMEDY = "install Prometheus, or run this once on Debian with its package index in reach"
CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: loadgen
    static_configs: [{{targets: {targets}}}]
"""


def prometheus(folder: Path = FOLDER, run: Run = install) -> str:
    """Find an installed Prometheus, or fetch one into `folder` on first use (20 MB).

    Raises:
        CannotBeMade: None is installed, and none can be fetched; the text says what to do.
    """
    if path := shutil.which("prometheus"):
        return path
    return str(unpacked(folder, ["prometheus"], _program, REMEDY, run)[1])


def _program(root: Path) -> Path:
    path = root / "usr/bin/prometheus"
    if not path.is_file():
        raise CannotBeMade("no program was in the packages")
    return path


class Database:
    """A Prometheus that runs.

    Args:
        url: Its base URL.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data that its HTTP API answers."""
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as reply:
            answer = json.load(reply)
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Evaluate an expression now; returns its series."""
        data = self.get("query", query=expression)
        found: list[dict[str, Any]] = data["result"]
        return found


@contextlib.contextmanager
def scraping(program: str, targets: Sequence[str], port: int, folder: Path) -> Iterator[Database]:
    """Have Prometheus scrape targets, each HOST:PORT, while the context lasts; it keeps its data
    in `folder`.
    """
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(targets=json.dumps(list(targets))))
    command = [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        database = Database(f"http://127.0.0.1:{port}")
        deadline_s = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                database.get("status/buildinfo")
                break
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline_s, "Prometheus does not answer"
            time.sleep(0.2)
        yield database
    finally:
        process.terminate()
        process.wait(30)
