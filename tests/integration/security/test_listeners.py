"""Servers listen on loopback by default."""

import ipaddress
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import loadgen.testing
from tests.helpers.captured_responses import FOLDER

SERVERS = ["loadgen.engines.sim"] + [
    f"loadgen.testing.{path.stem}"
    for folder in loadgen.testing.__path__
    for path in sorted(Path(folder).glob("*.py"))
    if "@server_main.command" in path.read_text()
]
NEEDED = {"loadgen.testing.replay": [str(next(FOLDER.glob("*.jsonl")))]}


@pytest.mark.parametrize("module", SERVERS)
def test_a_server_listens_on_loopback_by_default(module: str) -> None:
    command = [sys.executable, "-P", "-m", module, *NEEDED.get(module, []), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith("listening on http://127.0.0.1:")
            listening = [
                ipaddress.ip_address(found.laddr.ip)
                for found in psutil.Process(server.pid).net_connections("inet")
                if found.status == psutil.CONN_LISTEN
            ]
            assert listening
            assert all(address.is_loopback for address in listening)
        finally:
            server.kill()
