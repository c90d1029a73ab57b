"""Interrupts: a run that is ended early reports what it has measured."""

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

from loadgen.core.outcome import Outcome
from loadgen.features import capture
from loadgen.features.capture import End
from loadgen.runner.loop_runner import LoopRunner
from tests.helpers import saved_json
from tests.helpers.fault_runs import carried_out, job, recorded
from tests.helpers.response_bytes import HEAD, delta
from tests.helpers.run_facts import result
from tests.helpers.scripted_server import GOOD, read_request, serving


async def test_an_interrupted_run_keeps_what_it_has_measured(tmp_path: Path) -> None:
    """guidellm#227: results were written once, after the last request of the last rate.

    Users who pressed Ctrl-C an hour into a run were left with nothing.
    """
    answers, all_seen = [0], asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            answers[0] += 1
            writer.write(GOOD if answers[0] <= 5 else HEAD + b"\r\n" + delta(content="a"))
            await writer.drain()
            if answers[0] == 8:
                all_seen.set()

    options = {"records": str(tmp_path / "records"), "capture": str(tmp_path / "capture.jsonl")}
    async with serving(script) as url:
        runner, given = LoopRunner(), job(url, tmp_path, 20, max_concurrency=3, **options)
        run = asyncio.create_task(carried_out(runner, given))
        await asyncio.wait_for(all_seen.wait(), 30)
        runner.abort("interrupted")
        found = await run
    assert found.snapshot.outcomes == {"cancelled": 15, "ok": 5}
    assert found.snapshot.histograms["ttft_due"].count == 5
    assert [record.outcome for record in recorded(tmp_path / "records")].count(Outcome.OK) == 5
    ends = [response.end for response in capture.load(options["capture"]).responses]
    assert Counter(ends) == {End.RESPONSE: 5, End.CLIENT: 3}
    data = result(found.snapshot)
    assert (data["completed"], data["loadgen"]["partial"]) == (5, "interrupted")
    assert "PARTIAL: interrupted" in saved_json.render(data)


def test_an_interrupt_during_an_import_says_so(tmp_path: Path) -> None:
    (tmp_path / "hit.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    program = (
        "import signal, sys, loadgen.cli as cli\nsignal.signal(signal.SIGINT, cli._interrupt)\n"
        f"sys.path.append({str(tmp_path)!r})\nimport hit\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (130, "loadgen: interrupted\n")
