"""The doctor's capacity measurement: the highest rate at which a run is VALID."""

from dataclasses import asdict

import pytest

from loadgen.cli.commands import doctor as doctor_command
from loadgen.cli.doctor import capacity
from loadgen.cli.doctor.capacity import Capacity, Climb, Drive, climb
from tests.helpers.run_page_parts import words

NO_CLIMB = Climb(None, None)


def run(
    rate: float,
    *,
    valid: bool = True,
    busy: float = 0.3,
    streams: int = 10_000,
    disturbance: str = "",
) -> Drive:
    failed = () if valid else ("loop stalls",)
    verdict = "VALID" if valid else "SUSPECT"
    return Drive(
        rate,
        rate - 1,
        25 * rate,
        streams,
        busy,
        0.06 if valid else 3.2,
        verdict,
        failed,
        disturbance,
    )


def climbed(ceiling: float, first: float) -> tuple[Climb, list[float]]:
    """A search on a machine of which runs up to a rate are VALID, and which fills its loop at
    that rate to 70 %.
    """
    tried = []

    def run_at(rate: float) -> Drive:
        tried.append(rate)
        return run(rate, valid=rate <= ceiling, busy=0.7 * rate / ceiling)

    return climb(run_at, first), tried


def test_a_rate_that_leaves_the_loop_idle_is_followed_by_one_that_fills_it() -> None:
    found, tried = climbed(10_000, 4_000)
    # To 62 % of the loop, which is near enough.
    assert tried == pytest.approx([4_000, 8_857], rel=0.01)
    assert found.best is not None
    assert (found.best.rate, found.missed) == (tried[-1], None)


def test_a_rate_is_never_raised_by_more_than_one_run_can_foretell() -> None:
    _, tried = climbed(1_000_000, 1_000)
    assert tried == [1_000, 4_000, 16_000]


def test_invalid_run_is_followed_by_lower_then_middle_rates() -> None:
    found, tried = climbed(3_000, 4_000)
    assert tried == pytest.approx([4_000, 2_000, 2_828], rel=0.01)
    assert found.best is not None
    assert found.missed is not None
    assert (found.best.rate, found.missed.rate) == (tried[2], 4_000)


def test_capacity_is_unknown_without_a_valid_run() -> None:
    found, tried = climbed(10, 4_000)
    assert found.best is None
    assert found.missed is not None
    assert found.missed.rate == tried[-1] == 1_000


def text(**parts: object) -> str:
    made = {
        "cores": 2,
        "requests": NO_CLIMB,
        "events": NO_CLIMB,
        "streams": run(1),
        "connections": 60_000,
    } | parts
    sentences = doctor_command.capacity_sentences(Capacity(**made))  # type: ignore[arg-type]
    return " ".join(words(sentence.text) for sentence in sentences)


def test_the_capacity_is_printed_with_the_reasons() -> None:
    missed = run(8_001, valid=False, disturbance="other processes used 0.4 of 2 cores")
    said = text(requests=Climb(run(4_001), missed), events=Climb(run(401), None))
    assert (
        "Requests/s of 1 token: 4,000 from one process, VALID, client at most 0.06 ms, loop 30% "
        "busy. At 8,000:" in said
    )
    reasons = "(loop stalls; other processes used 0.4 of 2 cores)"
    assert f"At 8,000: SUSPECT, client at most 3.2 ms, loop 30% busy {reasons}." in said
    assert "Token events/s: 10,025 from one process" in said
    assert "No higher rate was tried." in said


def test_without_a_valid_run_the_reason_takes_the_place_of_the_figure() -> None:
    missed = run(1_001, valid=False, disturbance="other processes used 0.4 of 2 cores")
    said = text(requests=Climb(None, missed))
    reason = "SUSPECT, loop stalls; other processes used 0.4 of 2 cores"
    assert f"Requests/s of 1 token: not measured: {reason}. Token events/s: not measured." in said
    assert "1,000" not in said.replace("10,000", "")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"streams": run(400)},
            "10,000 concurrent streams: yes, with 10,000 token events/s, VALID, client at most",
        ),
        (
            {"streams": run(1, valid=False)},
            "streams: not measured: SUSPECT, loop stalls. Server",
        ),
        (
            {"streams": run(1, streams=9_000)},
            "streams: no, since only 9,000 were open at the same time",
        ),
        (
            {"streams": None, "connections": 960},
            "streams: no, since this process can open only 960 connections.",
        ),
    ],
)
def test_concurrent_streams_get_yes_or_no_with_the_reason(
    parts: dict[str, object], said: str
) -> None:
    assert said in text(**parts)


@pytest.mark.parametrize(
    ("cores", "said"), [(1, "shared the only core of this machine"), (8, "shared the 8 cores")]
)
def test_shared_cores_are_mentioned(cores: int, said: str) -> None:
    assert said in text(cores=cores)


@pytest.mark.parametrize("disturbance", ["", "other processes used 0.4 of 2 cores"])
def test_a_busy_machine_is_mentioned(disturbance: str) -> None:
    said = text(requests=Climb(run(4_000), run(8_000, valid=False, disturbance=disturbance)))
    assert ("measure again without them" in said) == bool(disturbance)


def test_json_has_the_best_and_the_missed_run_of_each_rate() -> None:
    found = asdict(
        Capacity(2, Climb(run(4_000), run(8_000, valid=False)), NO_CLIMB, run(400), 60_000)
    )
    assert found.keys() == {"cores", "requests", "events", "streams", "connections"}
    assert found["requests"]["best"]["rate"] == 4_000
    assert found["requests"]["missed"]["failed"] == ("loop stalls",)
    assert found["events"] == {"best": None, "missed": None}
    assert found["streams"]["verdict"] == "VALID"


@pytest.mark.slow
def test_capacity_is_measured_against_own_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """At rates that any machine drives; what they prove of it is not for a test to say."""
    for name, value in (
        ("MAX_RUNS", 1),
        ("FIRST_RPS", 200.0),
        ("FIRST_STREAM_RPS", 20.0),
        ("STREAMS", 50),
    ):
        monkeypatch.setattr(capacity, name, value)
    monkeypatch.setattr(capacity, "MANY_RPS", 100.0)
    monkeypatch.setattr(capacity.machine, "raise_open_files_limit", lambda: None)
    phases: list[str] = []
    found = capacity.measure(phases.append)
    assert phases == ["requests", "token events", "50 streams at once"]
    requests, events, streams = found.requests, found.events, found.streams
    (seen,) = [drive for drive in (requests.best, requests.missed) if drive]
    assert seen.rate == 200
    assert 0 < seen.requests_per_s <= 400
    (seen,) = [drive for drive in (events.best, events.missed) if drive]
    assert 100 < seen.events_per_s <= 20 * 1.2 * capacity.TOKENS
    assert streams is not None
    assert streams.streams == 50, "the first has not ended when the last begins"


@pytest.mark.slow
def test_streams_for_which_there_are_too_few_files_are_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capacity.machine, "raise_open_files_limit", lambda: None)
    monkeypatch.setattr(capacity.machine, "max_connections", lambda pairs: 960)
    monkeypatch.setattr(capacity, "climb", lambda run_at, first: NO_CLIMB)
    phases: list[str] = []
    found = capacity.measure(phases.append)
    assert (found.streams, found.connections) == (None, 960)
    assert phases == ["requests", "token events"]
