"""Lies of what is sent as recorded, of what is made private, and of what others read."""

from bench.mutants.mutant import Edit, Mutant, Test

TARGET = "loadgen/workload/target.py"
RECORDED = "loadgen/workload/datasets/recorded_requests.py"
STAND_INS = "loadgen/workload/datasets/stand_ins.py"
FOREIGN = "loadgen/lab/tools/tool_files.py"

EXCHANGE_LIES = (
    Mutant(
        "add a maximum to a recorded body",
        (Edit(TARGET, "if prompt.verbatim:\n", "if False:\n"),),
        Test("tests/workload/test_recorded_requests.py::test_no_maximum_is_added_to_a_body_without_one"),
    ),
    Mutant(
        "replace a recorded model and say nothing",
        (Edit(RECORDED, 'self.replaced["model"] += 1', "pass"),),
        Test("tests/workload/test_recorded_requests.py::test_model_and_stream_are_the_runs_and_each_replacement_is_counted"),
    ),
    Mutant(
        "keep a field of a private body that has no stand-in",
        (Edit(STAND_INS, "self.dropped[name] += 1\n        if", "made[name] = value\n        if"),),
        Test("tests/workload/test_stand_ins.py::test_no_word_of_the_original_is_left"),
    ),
    Mutant(
        "give texts that begin alike other first words",
        (Edit(STAND_INS, "blake2b(context, digest", "blake2b(text.encode(), digest"),),
        Test("tests/workload/test_stand_ins.py::test_texts_share_as_many_first_tokens_as_the_originals"),
    ),
    Mutant(
        "compare guidellm's TPOT, which counts from the start of a request",
        (Edit(FOREIGN, '"request_latency": ("e2el", 1e3)}',
              '"request_latency": ("e2el", 1e3), "time_per_output_token_ms": ("tpot", 1.0)}'),),
        Test("tests/lab/test_tool_files.py::test_guidellm_tpot_and_percentiles_of_its_itl_are_left_out"),
    ),
)  # fmt: skip
