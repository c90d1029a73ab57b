"""What the server saw: rate, lateness and the true times, of the answers that a load asks for."""

import numpy as np
import pytest

from bench.peers.peer import Reported
from bench.peers.trial import Failed, Served, whole
from bench.performance.load import Load
from loadgen.testing.truth import Truth

MS = 1_000_000
LOAD = Load("few", rate=100, count=3, tokens=2)


def truth(
    arrivals_ms: list[float], first_ms: float = 20.0, gap_ms: float = 5.0, counts: int = 2
) -> Truth:
    arrival = np.array([int(each * MS) for each in arrivals_ms])
    offsets = np.array([int((first_ms + gap_ms * number) * MS) for number in range(counts)])
    write = (arrival[:, None] + offsets).ravel()
    starts = np.arange(len(arrivals_ms) + 1) * counts
    return Truth(
        np.array([b""] * len(arrivals_ms)),
        arrival,
        starts,
        write,
        write.copy(),
        write.copy(),
        0,
        0.1,
    )


def test_the_latest_arrival_is_measured_from_constant_gaps() -> None:
    served = Served.of(truth([1000, 1010, 1027.5]), LOAD)
    assert served.first_ns == 1000 * MS
    assert served.late_max_ms == pytest.approx(7.5)
    assert served.achieved_rps == pytest.approx(2 / 0.0275)


def test_times_are_those_of_the_writes() -> None:
    served = Served.of(truth([0, 10, 20], first_ms=21.0, gap_ms=4.0), LOAD)
    assert served.times_ms["ttft"] == {50: 21.0, 99: 21.0}
    assert served.times_ms["itl"] == served.times_ms["tpot"] == {50: 4.0, 99: 4.0}
    assert not served.overloaded


def test_answers_in_any_order_are_put_in_that_of_arrival() -> None:
    served = Served.of(truth([20, 0, 10]), LOAD)
    assert served.first_ns == 0
    assert served.late_max_ms == 0.0
    assert served.achieved_rps == pytest.approx(100.0)


def test_answers_of_another_length_and_those_that_were_not_taken_do_not_count() -> None:
    known = truth([0, 10, 20, 25])
    known.write_ns[3] = 0  # the second answer's second token
    served = Served.of(known, LOAD)
    assert served.answers == 3
    assert served.late_max_ms == pytest.approx(10.0)  # of 0, 20 and 25 ms
    with pytest.raises(Failed, match="0 answers of 3 tokens"):
        Served.of(known, Load("longer", rate=100, count=3, tokens=3))


def test_a_report_says_first_what_is_missing() -> None:
    served = Served.of(truth([0, 10, 20]), LOAD)
    assert whole(Reported(6, says="all well"), served, LOAD).says == "all well"
    assert (
        whole(Reported(5, says="all well"), served, LOAD).says == "counted 5 of 6 tokens; all well"
    )
    more = Load("more", rate=100, count=4, tokens=2)
    assert whole(Reported(6), served, more).says == "asked for 3 of 4 answers"
