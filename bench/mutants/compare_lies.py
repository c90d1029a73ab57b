"""Lies about a comparison: answers and gates that rows of its table contradict."""

from bench.mutants.mutant import Edit, Mutant, Test

ROOM = "loadgen/analysis/compare"
PROPERTIES = "tests/analysis/compare/test_answer_properties.py"

COMPARE_LIES = (
    Mutant(
        "answer a comparison by p99 alone",
        (
            Edit(
                f"{ROOM}/finding.py",
                "        if row.conclusion in SIGNIFICANT and row.is_worse is not None:",
                '        if row.conclusion in SIGNIFICANT and row.metric.statistic == "p99":',
            ),
        ),
        Test(f"{PROPERTIES}::test_each_significant_latency_is_named_with_its_direction[0]"),
    ),
    Mutant(
        "name a latency in the better of its directions only",
        (
            Edit(
                f"{ROOM}/finding.py",
                "(row.metric.subject, row.is_worse), []",
                "(row.metric.subject, False), []",
            ),
        ),
        Test(f"{PROPERTIES}::test_each_significant_latency_is_named_with_its_direction[0]"),
    ),
    Mutant(
        "call a candidate the same that has a row which is worse",
        (
            Edit(
                f"{ROOM}/answer.py",
                "if sure := [finding for finding in changes if finding.is_sure]:",
                "if sure := []:",
            ),
        ),
        Test(f"{PROPERTIES}::test_no_row_contradicts_the_word[0]"),
    ),
    Mutant(
        "praise fewer errors than those of a run without success",
        (
            Edit(
                f"{ROOM}/answer.py",
                "return row if row.is_worse or not candidate.unanswered else None",
                "return row",
            ),
        ),
        Test(f"{PROPERTIES}::test_no_improvement_is_stated_beside_a_run_without_success[0]"),
    ),
    Mutant(
        "quote a figure without the mark of its row",
        (
            Edit(
                f"{ROOM}/texts.py",
                '{_signed(row.change, row)}{row.marks}"',
                '{_signed(row.change, row)}"',
            ),
        ),
        Test(f"{PROPERTIES}::test_figures_have_the_marks_of_their_rows[0]"),
    ),
    Mutant(
        "fail a gate by one start of each side",
        (
            Edit(
                f"{ROOM}/judged_comparison.py",
                "if not row.interval.basis.is_of_starts:",
                "if False:",
            ),
        ),
        Test(f"{PROPERTIES}::test_gates_agree_with_the_words[0]"),
    ),
    Mutant(
        "pass a gate by a value whose interval reaches the bound",
        (
            Edit(
                f"{ROOM}/judged_comparison.py",
                "if ends[0] == ends[1]:",
                "if ends[0] == ends[1] or not is_beyond:",
            ),
        ),
        Test(
            "tests/analysis/compare/test_condition.py::TestInterval::"
            "test_cannot_tell_if_the_bound_is_in_the_interval[base1-new1]"
        ),
    ),
)
