"""Lies of the judge, of the second program that computes a result, and one that the judge found."""

from bench.mutants.mutant import Edit, Mutant, Test

TRUTH, SCORES = "loadgen/lab/judge/truth.py", "loadgen/lab/judge/cell.py"
COUNTS = "loadgen/checks/token_counts.py"
VERIFY = "loadgen/lab/verify/findings.py"
RECORDS = "loadgen/lab/verify/records.py"
VERIFIED = "tests/lab/verify/test_verify.py::"
CELLS = "tests/lab/judge/test_cell.py::"
JUDGE_LIES = (
    Mutant(
        "believe counted tokens that no text has",
        (Edit(COUNTS, "if sample.hides else 0.0", "if False else 0.0"),),
        Test("tests/checks/test_token_counts.py::test_tokens_that_no_text_has_are_suspect"),
    ),
    Mutant(
        "count the times of failed answers as true",
        (Edit(TRUTH, "for served in good if served.w", "for served in requests if served.w"),),
        Test(CELLS + "test_an_answer_that_was_not_all_written_failed"),
    ),
    Mutant(
        "take what a tool always says for a remark on this server",
        (Edit(SCORES, "if _without_numbers(text) not in known", "if text not in known"),),
        Test(CELLS + "test_what_is_said_of_every_server_or_of_the_machine_is_not_said_of_this_one"),
    ),
    Mutant(
        "let the best of three rounds count",
        (Edit(SCORES, "[len(scored) // 2] for scored", "[0] for scored"),),
        Test(CELLS + "test_of_three_rounds_the_middle_error_counts"),
    ),
    Mutant(
        "call a tool right that sent nothing",
        (Edit(SCORES, "    if not requests:\n", "    if requests < 0:\n"),),
        Test(CELLS + "test_a_tool_that_sent_nothing_has_no_report"),
    ),
    Mutant(
        "call a tool right that printed nothing",
        (Edit(SCORES, "each.right and each.printed is not None", "each.right"),),
        Test(CELLS + "test_a_cell_is_as_bad_as_its_worst_figure"),
    ),
    Mutant(
        "verify no hash of the schedule",
        (Edit(VERIFY, "if due is not None and hashlib", "if due is None and hashlib"),),
        Test(VERIFIED + "test_a_planted_change_is_found[due_moved]"),
    ),
    Mutant(
        "let verify read a result of another version",
        (Edit(RECORDS, "if version != known or", "if False or"),),
        Test(VERIFIED + "test_a_result_that_is_not_whole_or_not_of_this_version_is_refused"),
    ),
    Mutant(
        "let verify call what the end of a run cut off failed",
        (Edit(RECORDS, "not self.ok and not self.cut_off", "not self.ok"),),
        Test(VERIFIED + "test_a_request_that_the_end_of_the_run_cut_off_did_not_fail"),
    ),
)  # fmt: skip
