"""Shutdowns: how a real engine is put away, in the states in which engines are known to hang."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass

import psutil

from bench.engines.engines import Real
from loadgen.engines import Leaked, Server
from loadgen.engines.launch import ports, processes
from loadgen.testing.stream import Stream

TRIALS = {"idle": 3, "streaming": 3, "SIGSTOPped": 2, "worker killed": 2}
STREAMS = 4
NOTICED_S = 5.0  # for an engine to notice that its worker is dead, or not


@dataclass(frozen=True)
class Shutdown:
    """One server that was stopped.

    Attributes:
        state: In which it was.
        ready_s: From its start to its first token.
        stop_s: Until nothing of it was left.
        survivors: What was left all the same, in words.
    """

    state: str
    ready_s: float
    stop_s: float
    survivors: tuple[str, ...]


def shut_down(real: Real, state: str) -> Shutdown:
    """Start a server, bring it into a state, and stop it.

    Raises:
        EngineFailed: It does not start.
    """
    case = real.case
    began_s = time.monotonic()
    server = case.begin()
    try:
        server.ready(case.ready_s)
        ready_s = time.monotonic() - began_s
        with contextlib.ExitStack() as streams:
            family = _family(server)
            if state == "streaming":
                for _ in range(STREAMS):
                    more = {"temperature": 0, **real.endless}
                    stream = Stream(
                        server.base_url,
                        server.model,
                        max_tokens=1500,
                        timeout_s=case.ready_s,
                        **more,
                    )
                    streams.enter_context(stream).first()
            elif state == "SIGSTOPped":
                for process in family:
                    process.suspend()
            elif state == "worker killed":
                # The process with the most memory computes: a child where there are some.
                worker = max(family[1:] or family, key=lambda process: process.memory_info().rss)
                os.kill(worker.pid, signal.SIGKILL)
                server.wait_ended(NOTICED_S)
            began_s = time.monotonic()
            left = _stopped(server, case.grace_s)
            stop_s = time.monotonic() - began_s
    finally:
        server.stop(0.0)
    left += [f"process {process.pid}" for process in family if process.is_running()]
    left += [f"tagged process {process}" for process in processes.tagged(server.run_id)]
    host, port = server.base_url.removeprefix("http://").split(":")
    left += [] if ports.is_free(host, int(port)) else [f"port {port}"]
    left += [f"folder {server.log.path.parent.name}"] if server.log.path.parent.exists() else []
    return Shutdown(state, ready_s, stop_s, tuple(left))


def _family(server: Server) -> list[psutil.Process]:
    """The process that was started, and all that it has started."""
    leader = psutil.Process(server.pid)
    return [leader, *leader.children(recursive=True)]


def _stopped(server: Server, grace_s: float) -> list[str]:
    try:
        server.stop(grace_s)
    except Leaked as leaked:
        return [str(leaked)]
    return []
