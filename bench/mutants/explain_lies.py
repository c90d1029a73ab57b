"""Lies about where the time of requests went, and whose fault it was."""

from bench.mutants.mutant import Edit, Mutant, Test

COLUMNS = "loadgen/explanation/request_columns.py"
GAPS, PARTS = "loadgen/explanation/gaps.py", "loadgen/explanation/parts.py"
REPLAY = "loadgen/explanation/replay.py"
EXPLAINER, COSTS = "loadgen/explanation/explainer.py", "loadgen/explanation/step_costs.py"
CAUSES = "tests/explanation/test_causes.py::"

EXPLAIN_LIES = (
    Mutant(
        "put the client's own late reading on the way to the server",
        (Edit(COLUMNS, "record.marks, record.earliest_marks", "record.marks, record.marks"),),
        Test(f"{CAUSES}test_a_planted_cause_is_named_first[client reads late]"),
    ),
    Mutant(
        "blame the client for lost packets",
        (Edit(GAPS, "is_early & (requests.lost[stream] == 0)", "is_early"),),
        Test(f"{CAUSES}test_lost_packets_are_no_fault_of_the_client"),
    ),
    Mutant(
        "lose a part of the time to the first token",
        (Edit(PARTS, "from_sent - prompt - outside,", "from_sent - prompt - 2 * outside,"),),
        Test("tests/explanation/test_parts.py::test_parts_add_up_to_the_ns"),
    ),
    Mutant(
        "name a cause of a few requests",
        (Edit(EXPLAINER, "LEAST_REQUESTS = 50", "LEAST_REQUESTS = 5"),),
        Test(f"{CAUSES}test_few_requests_name_nothing"),
    ),
    Mutant(
        "print the cost of a step where several engines share a URL",
        (Edit(COSTS, "LEAST_IN_TURN = 0.7", "LEAST_IN_TURN = 0.0"),),
        Test(
            "tests/explanation/test_step_costs.py::test_several_engines_behind_one_url_are_refused"
        ),
    ),
    Mutant(
        "believe a server that says more time than there was",
        (Edit(PARTS, "MOST_WRONG = 0.05", "MOST_WRONG = 2.0"),),
        Test(
            "tests/explanation/test_parts.py::"
            "test_a_server_that_says_more_than_there_was_is_not_believed"
        ),
    ),
    Mutant(
        "take two steps that came together for a larger KV cache",
        (
            Edit(
                REPLAY,
                "(np.bincount(step, values) * is_one).max()",
                "np.bincount(step, values).max()",
            ),
        ),
        Test(
            "tests/explanation/test_replay.py::"
            "test_steps_that_came_together_do_not_make_the_cache_larger"
        ),
    ),
    Mutant(
        "predict what further streams bring by a run that never had two",
        (Edit(REPLAY, "if np.isnan(self.costs.stream_error_ms):", "if False:"),),
        Test(
            "tests/explanation/test_replay.py::test_one_slot_does_not_tell_what_several_streams_cost"
        ),
    ),
)
