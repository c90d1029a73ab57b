"""Lies of the report of a run and of its journal, and errors of loadgen that nobody is told."""

from bench.mutants.mutant import Edit, Mutant, Test

SUMMARY = "loadgen/report/summary_line.py"
STATE = "loadgen/report/run_state.py"
NEXT = "loadgen/report/sections/next_step.py"
STATES = "tests/report/test_run_state.py::"

REPORT_LIES = (
    Mutant(
        "call a run OK in which no request succeeded",
        (Edit(STATE, "not result.numbers.completed\n        or result.no", "result.no"),),
        Test(f"{STATES}test_nothing_is_well_where_nothing_succeeded[1,000]"),
    ),
    Mutant(
        "believe records whose last line, with all that is known of the client, is gone",
        (
            Edit(
                "loadgen/checks/distortion.py",
                "run.snapshot.partial is not None and not run.client.known",
                "False",
            ),
        ),
        Test(
            "tests/runner/test_from_records.py::"
            "test_records_without_the_last_line_are_doubted_though_all_requests_ended"
        ),
    ),
    Mutant(
        "praise the measurement of a run in which no request succeeded",
        (Edit(SUMMARY, "    if result.numbers.completed:\n", "    if True:\n"),),
        Test(f"{STATES}test_nothing_is_well_where_nothing_succeeded[1,000]"),
    ),
    Mutant(
        "print a percentile of too few requests in the line",
        (Edit(SUMMARY, "if not few_mark(column, requests)]", "if True]"),),
        Test(f"{STATES}test_the_line_has_no_percentile_of_too_few_requests[1,000]"),
    ),
    Mutant(
        "quote a figure of the line without its mark",
        (Edit(SUMMARY, "{INEXACT if large_client_errors(name, result, (column,)) else ''}", ""),),
        Test(f"{STATES}test_a_mark_of_the_table_is_in_the_line_that_quotes_the_figure[1,000]"),
    ),
    Mutant(
        "doubt the clock of a run that is too short for a median",
        (Edit(STATE, "not result.slo and values_of(result) < LEAST", "False"),),
        Test(
            "tests/report/test_summary_line.py::"
            "test_a_run_without_a_median_is_too_few_whatever_else_is_wrong"
        ),
    ),
    Mutant(
        "let the answer stand below what it is drawn from",
        (
            Edit(
                "loadgen/document/templates/document.md.j2",
                "document.opening + document.blocks",
                "document.blocks + document.opening",
            ),
        ),
        Test(
            "tests/document/test_page_writer.py::"
            "test_every_form_has_title_answer_next_step_and_blocks_in_this_order"
        ),
    ),
    Mutant(
        "name a knee of three requests a level",
        (Edit("loadgen/report/series.py", "MIN_FOR_KNEE = 100", "MIN_FOR_KNEE = 3"),),
        Test("tests/report/test_series_answer.py::TestKnee::test_a_level_of_few_requests_leaves_it_open"),
    ),
    Mutant(
        "let an SLO on a percentile of too few requests pass",
        (Edit("loadgen/cli/exit_codes.py", " or has_too_few(result):", ":"),),
        Test(f"{STATES}test_the_exit_code_follows_from_the_state[1,000]"),
    ),
    Mutant(
        "take an error of the reader for a fault of the server",
        (
            Edit(
                "loadgen/core/stamped_connection.pyx",
                "response.abandon(Outcome.CLIENT_ERROR,",
                "response.abandon(Outcome.TRUNCATED,",
            ),
        ),
        Test(
            "tests/integration/faults/test_read_loop.py::"
            "test_a_bug_in_the_reading_of_a_response_is_an_error_of_the_client"
        ),
    ),
    Mutant(
        "close a pipe that the loop has closed",
        (Edit("loadgen/util/child_process.py", "if self._is_asyncio:", "if True:"),),
        Test("tests/util/test_child_process.py::test_a_file_that_got_the_number_meanwhile_stays_open"),
    ),
    Mutant(
        "leave the last requests out of the journal",
        (
            Edit(
                "loadgen/core/record_row.pyx",
                "        if not self.file.closed:\n            self.flush()",
                "        if not self.file.closed:\n            pass",
            ),
        ),
        Test("tests/metrics/test_records_file.py::test_the_first_line_says_what_the_run_is_and_each_other_is_a_record"),
    ),
    Mutant(
        "read a row that was cut off",
        (
            Edit(
                "loadgen/metrics/records/file.py",
                "if begin + size > self._size:",
                "if False and begin + size > self._size:",
            ),
        ),
        Test("tests/metrics/test_records_file.py::test_a_journal_is_read_wherever_its_writing_was_cut_off"),
    ),
    Mutant(
        "take times so far for those of the answer",
        (
            Edit(
                "loadgen/core/sse.pyx",
                "if delta.times_at and (delta.says & FINISH or not delta.says & CHOICE):",
                "if delta.times_at:",
            ),
        ),
        Test("tests/core/test_server_times.py::test_only_the_event_that_ends_the_answer_is_read"),
    ),
    Mutant(
        "split a mean by the times of other requests",
        (Edit("loadgen/report/result/server.py", "and own.count == measured.count", "and True"),),
        Test(
            "tests/report/test_server.py::"
            "test_path_and_front_end_are_unknown_where_the_server_counted_other_requests"
        ),
    ),
    Mutant(
        "recommend what SUSPECT runs found",
        (Edit(NEXT, "if verdict != Verdict.SUSPECT:", "if verdict:"),),
        Test(
            "tests/report/test_next_step.py::"
            "test_suspect_runs_are_to_be_repeated_before_their_answer_is_used"
        ),
    ),
    Mutant(
        "find no limit in a sweep that overloaded the server",
        (
            Edit(
                "loadgen/report/series_answer.py",
                '"KNEE" if best.result.findings.overloaded else "LIMIT"',
                '"LIMIT"',
            ),
        ),
        Test(
            "tests/report/test_series_answer.py::"
            "test_a_sweep_is_no_limit_where_its_highest_level_was_overloaded"
        ),
    ),
)  # fmt: skip
