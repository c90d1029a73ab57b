"""Equal arms, the differences between them, and gains within that noise."""

from pathlib import Path

from loadgen.lab.audit import Finding
from tests.helpers.audited_pages import block, fence, found, only


def page(
    gain: str, fast: float, *, seats: tuple[int, ...] = (16, 32, 64), sent: int = 10_000
) -> str:
    """Arms that differ in a limit that 11 in flight never reach and hardly in time, and one that
    is faster.
    """
    arms = ""
    for number, count in enumerate(seats, 1):
        tokens = sent if number == 1 else 10_000
        results = block(duration=20.1 - 0.1 * number, cap=11, input=tokens)
        arms += f"### Seats {count}\n\n{fence(f'--max-num-seqs={count}', 'bash')}\n"
        arms += f"{fence(results)}\n"
    return (
        "| Case | baseline | Optimized |\n|---|---|---|\n"
        f"| Chat | Total TPS: 1000.00 | Total TPS: {20100 / fast:.2f} ({gain}) |\n\n"
        f"### Base\n\n{fence('--x=1 --max-num-seqs=4', 'bash')}\n"
        f"{fence(block(duration=20.1, cap=11))}\n"
        f"{arms}### "
        f"Chunks\n\n{fence('--chunk=64', 'bash')}\n{fence(block(duration=fast, cap=11))}\n### "
        "Summary\n"
    )


def noise(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.rule == "noise"]


def test_a_gain_within_what_arms_alike_differ_by_is_noted(tmp_path: Path) -> None:
    finding = only(found(tmp_path, page("+1.0%", 19.9)), "noise")
    assert finding.note
    assert "3 arms are of one treatment" in finding.why
    assert "(df 2)" in finding.why
    assert "this is +1.01%" in finding.why


def test_two_runs_differ_by_more_than_each_from_its_mean(tmp_path: Path) -> None:
    # t(2) = 4.303 times an SD of 0.50% is 2.2%, and times the square root of 2 is 3.1%.
    assert "no gain below +3.1" in only(found(tmp_path, page("+2.6%", 19.59)), "noise").why


def test_arms_that_had_other_work_to_do_are_not_alike(tmp_path: Path) -> None:
    assert noise(found(tmp_path, page("+1.0%", 19.9, sent=10_100))) == []


def test_a_gain_beyond_it_is_let_pass(tmp_path: Path) -> None:
    assert noise(found(tmp_path, page("+25.6%", 16.0))) == []


def test_two_arms_alike_are_too_few_to_judge_by(tmp_path: Path) -> None:
    assert noise(found(tmp_path, page("+1.0%", 19.9, seats=(16, 32)))) == []


def test_a_limit_that_was_reached_is_a_treatment(tmp_path: Path) -> None:
    assert noise(found(tmp_path, page("+1.0%", 19.9, seats=(8, 9, 10)))) == []
