"""Lies about published results: findings that no page deserves, and colours that no bounds do."""

from bench.mutants.mutant import Edit, Mutant, Test

ROOM = "loadgen/lab/audit"
STUDIES = "tests/lab/audit/test_rules_of_studies.py"

AUDIT_LIES = (
    Mutant(
        "hold a recipe of several models to one of them",
        (
            Edit(
                f"{ROOM}/rules/__init__.py",
                "    yield from OF_STUDIES if study.compares else ()",
                "    yield from OF_STUDIES",
            ),
        ),
        Test(f"{STUDIES}::test_a_page_that_tries_nothing_in_stages_promises_no_model_and_no_load"),
    ),
    Mutant(
        "call a client wrong that reaches one of the servers beside it",
        (Edit(f"{ROOM}/rules/loads.py", "if not all(differing)", "if not any(differing)"),),
        Test(f"{STUDIES}::test_a_client_is_held_to_the_servers_beside_it_and_at_its_own_line"),
    ),
    Mutant(
        "take a mean TPOT of many lengths for one that includes the first token",
        (
            Edit(
                f"{ROOM}/rules/streams.py",
                "bool(reply or result.over_guidellm) and printed.agrees(e2el / tokens)",
                "printed.agrees(e2el / tokens)",
            ),
        ),
        Test("tests/lab/audit/test_excerpts.py"),
    ),
    Mutant(
        "take every random length for the one that was asked of SGLang's tool",
        (
            Edit(
                f"{ROOM}/workload.py",
                "return share if self.tool.draws_below else max(0.0, 1 - share)",
                "return 1.0",
            ),
        ),
        Test("tests/lab/audit/test_workloads.py::test_random_lengths_are_drawn_as_the_tool_does"),
    ),
    Mutant(
        "colour a difference by its sign",
        (
            Edit(
                "loadgen/lab/study/execute/arm_result.py",
                "if self.low is not None and self.low > 0:",
                "if self.share > 0:",
            ),
        ),
        Test("tests/lab/study/test_page.py::test_published_results_have_percentages_without_bounds"),
    ),
)
