"""Lies about servers: whether they hang, how long a study waits, who else uses the machine."""

from bench.mutants.mutant import Edit, Mutant, Test

LIVENESS, TESTS = "loadgen/runner/liveness.py", "tests/runner/test_liveness.py"

SERVER_LIES = (
    Mutant(
        "call a server hung that computes",
        (Edit(LIVENESS, "bool(answer.token) and not believed", "bool(answer.token)"),),
        Test(f"{TESTS}::test_a_sign_that_moves_keeps_a_server_as_long_as_it_does"),
    ),
    Mutant(
        "call a server hung of which nothing is seen",
        (Edit(LIVENESS, "bool(answer.health or self._sees_processes)", "True"),),
        Test(f"{TESTS}::test_good_health_alone_keeps_a_server_of_which_no_process_is_seen"),
    ),
    Mutant(
        "take a busy wait for work, however long it lasts",
        (Edit(LIVENESS, "if silence.for_s < sign.lasts_s", "if True"),),
        Test(
            f"{TESTS}::test_a_busy_processor_explains_no_longer_silence_than_a_first_token_may_take"
        ),
    ),
    Mutant(
        "take what a log says again for progress",
        (Edit(LIVENESS, "new = lines - self._said", "new = lines"),),
        Test(f"{TESTS}::test_a_log_moves_with_what_it_has_not_said_before"),
    ),
    Mutant(
        "wait beyond a study's budget for a start that never ends",
        (
            Edit(
                "loadgen/lab/study/execute/conductor.py",
                "None if math.isinf(left_s) else left_s",
                "None if True else left_s",
            ),
        ),
        Test("tests/lab/study/test_store.py::test_budget_ends_a_start_that_never_does"),
    ),
    Mutant(
        "go on with a study that can decide nothing",
        (
            Edit(
                "loadgen/lab/study/execute/walk.py",
                "least_effect <= MAX_LEAST_EFFECT",
                "True",
            ),
        ),
        Test(
            "tests/lab/study/test_walk_objective.py::"
            "test_a_study_that_can_detect_only_effects_above_a_half_ends_and_says_so"
        ),
    ),
    Mutant(
        "keep a confirmation of a winner that added arms may replace",
        (
            Edit(
                "loadgen/lab/study/execute/conductor.py",
                "        store.set_aside(CONFIRMATION)",
                "        pass",
            ),
        ),
        Test(
            "tests/lab/study/test_store.py::"
            "test_a_study_that_is_over_goes_on_with_added_arms_and_stages"
        ),
    ),
    Mutant(
        "overlook programs beside a server on this machine",
        (
            Edit(
                "loadgen/checks/distortion.py",
                "is_free = others <= most or",
                "is_free = True or",
            ),
        ),
        Test(
            "tests/checks/test_distortion.py::"
            "test_cores_that_others_take_from_a_local_server_are_red"
        ),
    ),
    Mutant(
        "count the children of a server as others",
        (
            Edit(
                "loadgen/metrics/client_cpu_usage.py",
                "return family(self._server_pids)",
                "return {*self._server_pids}",
            ),
        ),
        Test(
            "tests/integration/library/test_neighbours.py::test_children_of_a_server_are_no_others"
        ),
    ),
)
