"""Programs that run beside a server on this machine: what they take is measured, and judged."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import loadgen
from loadgen.engines.launch import ports
from loadgen.engines.launch.processes import family, family_cpu_s
from loadgen.metrics.client_cpu_usage import UsageSampler
from loadgen.testing.process import started
from loadgen.util.machine import process_cpu_s
from tests.helpers.repeated import Repeated

SPIN = "while True: pass"
PROMPTS = Repeated(loadgen.Prompt("badu kemo badu", 3, 2, "mine"))


@contextmanager
def spinning(count: int) -> Iterator[list[int]]:
    """Run programs that use all the CPU time that they get."""
    programs = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield [program.pid for program in programs]
    finally:
        for program in programs:
            program.kill()
            program.wait()


async def test_programs_beside_a_local_server_make_its_figures_suspect() -> None:
    with started("loadgen.testing.metronome") as server, spinning(4) as programs:
        before_s = sum(map(process_cpu_s, programs))
        result = await loadgen.run(
            loadgen.RunSettings(base_url=server.url, request_rate=50, num_prompts=100),
            dataset=PROMPTS,
        )
        used_s = sum(map(process_cpu_s, programs)) - before_s
    client = result.client
    assert result.verdict is loadgen.Verdict.SUSPECT
    (check,) = [check for check in result.checks if check.name == "other programs used the CPU"]
    assert check.ok is False
    assert check.value.startswith(f"other processes used {client.others_cores:.1f} of ")
    # The programs also ran before the clock started, and after it.
    assert client.others_cores >= 0.5 * used_s / (client.wall_s + 3.0)


@pytest.mark.parametrize("protocol", [ports.NETLINK_SOCK_DIAG, 31])  # no kernel has the second
def test_server_is_what_listens_at_its_url(protocol: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "NETLINK_SOCK_DIAG", protocol)
    with started("loadgen.testing.metronome") as server:
        port = server.url.rpartition(":")[2]
        for url in (server.url, f"http://localhost:{port}/v1"):
            assert ports.servers([url]) == (server.pid,)
        # of the addresses for documentation, which no machine has
        assert ports.servers([f"http://192.0.2.1:{port}"]) == ()
    assert ports.servers([server.url]) == ()


def test_children_of_a_server_are_no_others() -> None:
    """The same program as a part of the server, and as another, in the same second."""
    shell = ["/bin/sh", "-c", f"{sys.executable} -c '{SPIN}' & wait"]
    with (
        subprocess.Popen(["sleep", "60"]) as idle,
        subprocess.Popen(shell, start_new_session=True) as server,
    ):
        try:
            time.sleep(0.5)
            used_s = family_cpu_s(family([server.pid]))
            serves, is_another = UsageSampler((), (server.pid,)), UsageSampler((), (idle.pid,))
            time.sleep(1.0)
            as_server, as_another = serves.so_far().others_cores, is_another.so_far().others_cores
            used_s = family_cpu_s(family([server.pid])) - used_s
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            idle.kill()
    assert as_server is not None
    assert as_another is not None
    assert used_s > 0.1
    assert as_another - as_server >= 0.5 * used_s
