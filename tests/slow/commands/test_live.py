"""The live view on a terminal appears during a run, is removed after it, and changes no result."""

import json
import re
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from loadgen.engines.launch import ports
from tests.helpers.command_line import SHORT, TOKENIZER, hear, in_flight, loadgen, served, start
from tests.helpers.console_lines import report_of
from tests.helpers.terminal import Screen, on_terminal

SMALL = ["--rate", "100", "--num-prompts", "150", *SHORT]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that tells of itself."""
    with served() as (url, _):
        yield url


@pytest.fixture
def run(url: str) -> list[str]:
    """A run of a second and a half."""
    return ["run", "--base-url", url, "--tokenizer", TOKENIZER, *SMALL]


def test_a_screen_shows_what_a_terminal_would() -> None:
    screen = Screen()
    screen.feed("note\r\none\r\n\x1b[1mtwo\x1b[0m")
    assert screen.text == "note\none\ntwo"
    screen.feed("\r\x1b[2K\x1b[1A\x1b[2Kthree")
    assert screen.text == "note\nthree"


def test_live_view_appears_during_the_run_and_is_removed(run: list[str], tmp_path: Path) -> None:
    with on_terminal(*run, "--save-result", "--result-filename", "r.json", cwd=tmp_path) as command:
        lines = command.see("E2EL").splitlines()
        assert lines[0] == "100 req/s (Poisson), random 16 in, 4 out, 150 requests"
        assert lines[1].startswith(("running", "draining", "done"))
        assert max(map(len, lines)) < 80
        code, out = command.end()
    assert "\x1b[1mdone" in command.drawn
    assert command.screen.text == ""
    # The cursor is back.
    assert command.drawn.rindex("\x1b[?25h") > command.drawn.rindex("\x1b[?25l")
    assert code == 0
    assert report_of(out) == loadgen("report", "r.json", cwd=tmp_path).stdout
    assert json.loads((tmp_path / "r.json").read_text())["completed"] == 150


def test_live_view_redraws_at_most_four_times_a_second(run: list[str]) -> None:
    began_s = time.monotonic()
    with on_terminal(*run) as command:
        command.end()
    # Bold is the phase, not what the server says it runs.
    frames = command.drawn.count("\x1b[1mrunning")
    assert 0 < frames <= 4 * (time.monotonic() - began_s)


def test_a_low_and_narrow_terminal_is_never_overdrawn(run: list[str]) -> None:
    with on_terminal(*run, columns=40, rows=8) as command:
        lines = command.see("requests sent").splitlines()
        command.end()
    assert len(lines) < 8
    assert max(map(len, lines)) < 40
    assert command.screen.text == ""


def test_interrupt_message_stays_after_the_live_view() -> None:
    with served("--step-base-ms", "200") as (url, _):  # so that some requests are always in flight
        slow = [
            "run",
            "--base-url",
            url,
            "--tokenizer",
            TOKENIZER,
            "--rate",
            "50",
            "--duration",
            "60",
            *SHORT,
        ]
        with on_terminal(*slow) as command:
            command.see("in flight +[1-9]")
            command.process.send_signal(signal.SIGINT)
            code, out = command.end()
    assert code == 130
    assert "PARTIAL: interrupted" in out
    said, *kept = command.screen.text.splitlines()
    assert said == "loadgen: interrupted: waiting for requests in flight; Ctrl-C again ends them"
    assert "the records of this run are kept" in "".join(kept)


@pytest.mark.parametrize(
    "how", [{"flag": "--disable-tqdm"}, {"TERM": "dumb"}], ids=["asked for", "dumb"]
)
def test_lines_are_on_a_terminal_too_where_that_is_better(
    run: list[str], how: dict[str, str]
) -> None:
    flag = [how["flag"]] if "flag" in how else []
    with on_terminal(
        *run, *flag, **{name: value for name, value in how.items() if name != "flag"}
    ) as command:
        code, _ = command.end()
    assert code == 0
    assert "\x1b" not in command.drawn
    assert "loadgen: running" in command.drawn


def test_the_last_line_is_of_the_whole_run(run: list[str]) -> None:
    last = loadgen(*run).stderr.splitlines()[-1]
    assert re.match(
        r"loadgen: done \d+ s: 150 of 150 answered, 0 in flight, 0 failed, \d+ tokens$", last
    )


def test_quiet_hides_the_live_view(run: list[str]) -> None:
    with on_terminal(*run, "--quiet") as command:
        code, _ = command.end()
    assert (code, command.drawn) == (0, "")


def test_the_runs_of_a_sweep_are_shown_one_by_one(url: str) -> None:
    two = [
        "run",
        "--base-url",
        url,
        "--tokenizer",
        TOKENIZER,
        "--rate",
        "100,200",
        "--num-prompts",
        "250",
        *SHORT,
    ]
    with on_terminal(*two) as command:
        command.see("asked 100/s")
        command.see("asked 200/s")
        code, _ = command.end()
    assert code == 0
    assert command.screen.text.splitlines() == [
        "loadgen: run 1 of 2: 100 req/s",
        "loadgen: run 2 of 2: 200 req/s",
    ]


# -- what Prometheus is told


@pytest.fixture
def port() -> Iterator[int]:
    """One that no outgoing connection and no other test gets."""
    reserved = ports.reserve("127.0.0.1")
    yield reserved.port
    reserved.release()


def test_while_a_run_goes_on_prometheus_may_ask_how_far_it_is(run: list[str], port: int) -> None:
    command = start(*run, "--duration", "30", "--num-prompts", "100000", "--prometheus", str(port))
    try:
        where = hear(command, lambda line: "metrics at" in line).split()[-1]
        hear(command, lambda line: in_flight(line) > 0)
        with urllib.request.urlopen(where, timeout=10) as reply:
            families = {
                one.name: one for one in text_string_to_metric_families(reply.read().decode())
            }
        assert families["loadgen_requests_sent"].samples[0].value > 0
        assert families["loadgen_ttft_seconds"].type == "histogram"
        (info,) = families["loadgen_run_info"].samples
        assert (info.labels["model"], info.labels["rate"], info.value) == ("sim", "100", 1)
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=30)
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(where, timeout=10)
    finally:
        command.kill()
        command.communicate()


def test_scraper_sees_every_request_of_the_run(run: list[str], port: int) -> None:
    command, ended = start(*run, "--prometheus", str(port)), 0.0
    try:
        where = hear(command, lambda line: "metrics at" in line).split()[-1]
        while ended < 150:
            time.sleep(0.4)
            with urllib.request.urlopen(
                where, timeout=10
            ) as reply:  # refused: it has ended before it had told all
                families = text_string_to_metric_families(reply.read().decode())
                ended = (
                    next(one for one in families if one.name == "loadgen_requests").samples[0].value
                )
        assert command.wait(30) == 0
    finally:
        command.kill()
        command.communicate()


def test_a_port_in_use_is_one_line_before_anything_is_sent(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = str(taken.getsockname()[1])
        done = loadgen(
            "run", "--engine", "sim", "--rate", "10", "--prometheus", place, cwd=tmp_path
        )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(
        f"loadgen run: --prometheus: cannot listen on 127.0.0.1:{place} ("
    )
    assert done.stderr.count("\n") == 1
