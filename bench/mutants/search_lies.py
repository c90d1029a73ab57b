"""Lies about searches: brackets that disturbed runs close."""

from bench.mutants.mutant import Edit, Mutant, Test

ALGORITHM = "loadgen/analysis/search/algorithm.py"
TESTS = "tests/analysis/search/test_doubted_levels.py"

SEARCH_LIES = (
    Mutant(
        "take a disturbed miss for the edge of a search",
        (Edit(ALGORITHM, "End.DISTURBED if search.doubts(fails) else End.EDGE", "End.EDGE"),),
        Test(f"{TESTS}::test_a_bracket_is_never_closed_by_a_disturbed_miss"),
    ),
    Mutant(
        "believe a miss that a higher level contradicts",
        (Edit(ALGORITHM, "if better and self.may_repeat(level):", "if False:"),),
        Test(f"{TESTS}::test_a_miss_that_a_higher_level_outdoes_is_run_again"),
    ),
    Mutant(
        "tell a bracket that only disturbed runs support",
        (Edit(ALGORITHM, "search.misses(doubted=False)", "search.misses()"),),
        Test(f"{TESTS}::test_the_bracket_of_undisturbed_runs_is_told"),
    ),
)
