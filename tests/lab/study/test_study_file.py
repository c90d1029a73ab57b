"""An invalid study file is refused in one line with file, line, key and remedy."""

from pathlib import Path

import pytest

from loadgen.errors import BadInput
from loadgen.lab.study.plan.planner import plan
from tests.helpers.study_files import read

TEXT = """\
name: small
models: {bf16: Qwen/Qwen3-8B}
hardware: {name: a box, devices: 1}
engines:
  vllm: {version: 0.17.1}
workloads: {short: short}
objective: {workload: short}
baseline: {engine: vllm, model: bf16}
stages:
  - name: first
    choice:
      cached: {knobs: {prefix_cache: true}}
  - name: second
    grid:
      max_seqs: [64, 128]
"""


def refusal(folder: Path, text: str) -> str:
    """What a file is refused with, when it is read or planned, without the folder."""
    with pytest.raises(BadInput) as refused:
        read_and_planned(folder, text)
    message = str(refused.value)
    assert "\n" not in message
    assert refused.value.remedy
    return message.replace(str(folder) + "/", "")


def read_and_planned(folder: Path, text: str) -> None:
    file = read(folder, text)
    with file.named():
        plan(file.study)


def changed(before: str, after: str) -> str:
    assert TEXT.count(before) == 1
    return TEXT.replace(before, after)


DECIDES = "workload: short}"  # more keys may follow


@pytest.mark.parametrize(
    ("written", "of", "name", "value"),
    [
        ("decision: {min_effect: 5%}", "decision", "min_effect", 0.05),
        ("decision: {confidence: 90%}", "decision", "confidence", 0.9),
        ("budget: {hours: 6m}", "budget", "hours", 0.1),
        ("budget: {gpu_hours: 8h}", "budget", "gpu_hours", 8),
        ("budget: {start_timeout: 5m}", "budget", "start_timeout", 300),
        ("budget: {quiet_wait: 0s}", "budget", "quiet_wait", 0),
    ],
)
def test_shares_and_times_may_have_units(
    tmp_path: Path, written: str, of: str, name: str, value: float
) -> None:
    study = read(tmp_path, changed(DECIDES, f"{DECIDES}\n{written}")).study
    assert getattr(getattr(study, of), name) == pytest.approx(value)


def test_a_file_that_says_it_right_is_a_study(tmp_path: Path) -> None:
    file = read(tmp_path, TEXT)
    assert [stage.name for stage in file.study.stages] == ["first", "second"]
    assert file.lines["stages", 1, "grid", "max_seqs"] == 15


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        # keys
        ("name: small", "nam: small", "study.yaml:1: nam: unknown key; did you mean name?"),
        (
            "name: a box,",
            "nam: a box,",
            "study.yaml:3: hardware.nam: unknown key; did you mean name?",
        ),
        (
            "    grid:",
            "    gird:",
            "study.yaml:13: stages.1: needs exactly one of choice, grid, joint, interactions;",
        ),
        (
            "    grid:",
            "    joint: {}\n    grid:",
            "study.yaml:13: stages.1: needs exactly one of choice, grid, joint, interactions;",
        ),
        (
            "    grid:",
            "    wher: a\n    grid:",
            "study.yaml:14: stages.1.wher: unknown key; did you mean where?",
        ),
        (
            "{knobs: {prefix_cache: true}}",
            "{knob: {}}",
            "study.yaml:12: stages.0.choice.cached.knob: unknown key; did you mean knobs?",
        ),
        ("name: small\n", "", "study.yaml:1: name: is missing; give it"),
        (
            "hardware:",
            "name: big\nhardware:",
            "study.yaml:3: name: is given twice; give it once; it is in line 1",
        ),
        # values
        (
            "devices: 1",
            "devices: many",
            "study.yaml:3: hardware.devices: invalid value 'many'; write a whole number",
        ),
        (
            "devices: 1",
            "devices: true",
            "study.yaml:3: hardware.devices: invalid value True; write a whole number",
        ),
        (
            "devices: 1",
            "devices: -1",
            "study.yaml:3: hardware.devices: invalid value -1; write 0 or more",
        ),
        ("0.17.1", "0.10", "study.yaml:5: engines.vllm.version: 0.1 is a number to YAML"),
        ("name: first", "name: a/b", "study.yaml:10: stages.0.name: 'a/b' is not a name;"),
        ("name: first", "name: 'a/{b}'", "study.yaml:10: stages.0.name: 'a/{b}' is not a name;"),
        (
            "name: first",
            "name: baseline",
            "study.yaml:10: stages.0.name: 'baseline' is not a name;",
        ),
        (
            "max_seqs: [64, 128]",
            "max_seqs: []",
            "study.yaml:15: stages.1.grid.max_seqs: invalid value []; give 1 or more",
        ),
        (
            "max_seqs: [64, 128]",
            "max_seqs: 64",
            "study.yaml:15: stages.1.grid.max_seqs: invalid value 64; write a list",
        ),
        (
            "workload: short}",
            "workload: short}\ndecision: {repeats: 3}",
            "study.yaml:8: decision.repeats: invalid value 3; write keys and values, `NAME: "
            "VALUE`; `loadgen tune",
        ),
        (
            "    grid:",
            "  - 3\n  - name: x\n    grid:",
            "study.yaml:13: stages.1: needs exactly one of choice, grid,",
        ),
        # of several the first in the file, or else an unknown key
        (
            "name: small",
            "keep: x\nname: a/b",
            "study.yaml:1: keep: invalid value 'x'; write a whole number",
        ),
        (
            "name: small",
            "name: a/b\nkepe: 1",
            "study.yaml:2: kepe: unknown key; did you mean keep?",
        ),
        (
            "devices: 1",
            f"gpu_hour_price: 1{'0' * 400}",
            "study.yaml:3: hardware.gpu_hour_price: invalid value 1000",
        ),
        # shares and times
        (
            DECIDES,
            DECIDES + "\ndecision: {min_effect: 5}",
            "study.yaml:8: decision.min_effect: 5 is not a share; write 0.05, or 5%",
        ),
        (
            DECIDES,
            DECIDES + "\ndecision: {confidence: 95}",
            "study.yaml:8: decision.confidence: 95 is not a share; write 0.95, or 95%",
        ),
        (
            DECIDES,
            DECIDES + "\ndecision: {min_effect: x%}",
            "study.yaml:8: decision.min_effect: 'x%' is not a share; write a number from 0 to",
        ),
        (
            DECIDES,
            DECIDES + "\ndecision: {min_effect: 500}",
            "study.yaml:8: decision.min_effect: invalid value 500; write less than 1",
        ),
        (
            DECIDES,
            DECIDES + "\nbudget: {hours: '6'}",
            "study.yaml:8: budget.hours: '6' is not a time; write hours, as 0.5, or a time as",
        ),
        (
            DECIDES,
            DECIDES + "\nbudget: {hours: 0m}",
            "study.yaml:8: budget.hours: invalid value 0.0; write more than 0",
        ),
        # conditions and expected arms
        (
            "    grid:",
            "    expect: max_seqs=64\n    where: max_seqs > 200\n    grid:",
            "study.yaml:15: stages.1.where: no combination of the grid meets 'max_seqs > 200'; "
            "change the condition",
        ),
        (
            "    grid:",
            "    expect: {max_seqs: 65}\n    grid:",
            "study.yaml:14: stages.1.expect: unknown arm 'max_seqs=65'; the arms are max_seqs=64, "
            "max_seqs=128",
        ),
        (
            "    grid:",
            "    expect: [3]\n    grid:",
            "study.yaml:14: stages.1.expect: [3] names no arm; write combinations of the grid",
        ),
        # names
        (
            "engine: vllm",
            "engine: vlm",
            "study.yaml:8: baseline.engine: unknown name 'vlm'; did you mean vllm?",
        ),
        ("model: bf16", "model: fp8", "study.yaml:8: baseline.model: unknown name 'fp8';"),
        ("engine: vllm, ", "", "study.yaml:8: baseline: has no engine; name one of vllm"),
        (
            "workload: short",
            "workload: shrt",
            "study.yaml:7: objective.workload: unknown name 'shrt'; did you mean short",
        ),
        (
            "  vllm:",
            "  sglang2: {}\n  vllm:",
            "study.yaml:5: engines.sglang2: unknown name 'sglang2'; choose from",
        ),
        ("  vllm:", "  vlm:", "study.yaml:5: engines.vlm: unknown name 'vlm'; choose from"),
        (
            "name: second",
            "name: first",
            "study.yaml:13: stages.1.name: another stage has the name 'first';",
        ),
        (
            "name: second",
            "name: second\n    from: third",
            "study.yaml:14: stages.1.from: unknown name 'third';",
        ),
        (
            "name: second",
            "name: second\n    from: first/off",
            "study.yaml:14: stages.1.from: unknown arm 'off'; the",
        ),
        (
            "name: first",
            "name: first\n    from: second/x",
            "study.yaml:11: stages.0.from: unknown name 'second';",
        ),
        (
            "name: first",
            "name: first\n    expect: 3",
            "study.yaml:11: stages.0.expect: invalid value 3;",
        ),
        (
            "name: first",
            "name: first\n    expect: o",
            "study.yaml:11: stages.0.expect: unknown arm 'o'; the arms",
        ),
        (
            "name: first",
            "name: first\n    expect: [cached, x]",
            "study.yaml:11: stages.0.expect: 2 arms, and 1 are kept;",
        ),
        (
            "name: second",
            "name: second\n    workloads: [none]",
            "study.yaml:14: stages.1.workloads.0: unknown name 'none'",
        ),
        # knobs
        (
            "max_seqs:",
            "max_seq:",
            "study.yaml:15: stages.1.grid.max_seq: unknown knob; did you mean max_seqs?",
        ),
        (
            "[64, 128]",
            "[64, lots]",
            "study.yaml:15: stages.1.grid.max_seqs: 'lots' is not a whole number;",
        ),
        (
            "prefix_cache: true",
            "prefix_cach: true",
            "study.yaml:12: stages.0.choice.cached.knobs.prefix_cach: unknown knob;",
        ),
        (
            "prefix_cache: true",
            "speculative: {method: 3}, kv_dtype: 4",
            "study.yaml:12: stages.0.choice.cached.knobs.kv_dtype: 4 is not a word;",
        ),
        (
            "version: 0.17.1",
            "version: 0.11.0, knobs: {performance_mode: throughput}",
            "study.yaml:5: engines.vllm.knobs.performance_mode: vllm 0.11.0 does not support it;",
        ),
        (
            "{knobs: {prefix_cache: true}}",
            "{knobs: {max_seqs: 3}, raw: [--max-num-seqs 4]}",
            "study.yaml:12: stages.0.choice.cached: --max-num-seqs: it sets the same thing as the "
            "knob max_seqs;",
        ),
        (
            "model: bf16}",
            "model: bf16, knobs: {tensor_parallel: 2}}",
            "study.yaml:8: baseline.knobs.tensor_parallel: 2 devices wide, and each replica has 1;",
        ),
        # raw flags and variables
        (
            "{knobs: {prefix_cache: true}}",
            "{raw: [seed]}",
            "study.yaml:12: stages.0.choice.cached.raw.0: 'seed' is not a flag;",
        ),
        (
            "{knobs: {prefix_cache: true}}",
            '{raw: ["--a \'"]}',
            'study.yaml:12: stages.0.choice.cached.raw.0: "--a \'" cannot',
        ),
        (
            "{knobs: {prefix_cache: true}}",
            "{env: {HF_TOKEN: [hunter2]}}",
            "study.yaml:12: stages.0.choice.cached.env.HF_TOKEN: invalid value;",
        ),
        # workloads
        (
            "short: short}",
            "short: shrot}",
            "study.yaml:6: workloads.short: unknown preset or file 'shrot';",
        ),
        (
            "short: short}",
            "short: {request_rate: 0}}",
            "study.yaml:6: workloads.short.request_rate: 0 is out of range",
        ),
        (
            "short: short}",
            "short: {num_promts: 3}}",
            "study.yaml:6: workloads.short.num_promts: unknown setting;",
        ),
        (
            "short: short}",
            "short: {seed: x}}",
            "study.yaml:6: workloads.short.seed: 'x' is not a whole number",
        ),
        (
            "short: short}",
            "short: {base_url: x}}",
            "study.yaml:6: workloads.short.base_url: is decided by the study;",
        ),
        (
            "short: short}",
            "short: {total_requests: 0}}",
            "study.yaml:6: workloads.short.total_requests: invalid value 0;",
        ),
        ("short: short}", "short: 3}", "study.yaml:6: workloads.short: is not a workload;"),
        # objective
        (
            "workload: short}",
            "workload: short, metric: speed}",
            "study.yaml:7: objective.metric: invalid value 'speed';",
        ),
        (
            "workload: short}",
            "workload: short, slo: fast}",
            "study.yaml:7: objective.slo: invalid limit 'fast';",
        ),
        (
            "workload: short}",
            "workload: short, metric: max_rate_under_slo}",
            "study.yaml:7: objective: max_rate_under_slo without an slo;",
        ),
        (
            "workload: short}",
            "workload: short, metric: cost_per_mtok}",
            "study.yaml:3: hardware: has no gpu_hour_price;",
        ),
        # conditions
        (
            "    grid:",
            "    where: max_seqs >\n    grid:",
            "study.yaml:14: stages.1.where: 'max_seqs >': is not an expression;",
        ),
        (
            "    grid:",
            "    where: max_seq > 3\n    grid:",
            "study.yaml:14: stages.1.where: unknown knob max_seq; did you",
        ),
        (
            "    grid:",
            "    where: tensor_parallel > 3\n    grid:",
            "study.yaml:14: stages.1.where: tensor_parallel is not set in max_seqs=64; write "
            "(tensor_parallel or 1)",
        ),
        (
            "    grid:",
            "    where: 512 / (max_seqs - 64) > 3\n    grid:",
            "study.yaml:14: stages.1.where: it divides by 0 in max_seqs=64; write `NAME != 0 and` "
            "before it",
        ),
        (
            "    grid:",
            "    where: max_seqs < 'many'\n    grid:",
            "study.yaml:14: stages.1.where: 64 and 'many' cannot be compared in max_seqs=64; "
            "compare numbers",
        ),
    ],
)
def test_invalid_value_is_refused_with_its_place(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    assert refusal(tmp_path, changed(before, after)).startswith(message)


def test_the_value_of_a_variable_is_not_repeated(tmp_path: Path) -> None:
    text = changed("{knobs: {prefix_cache: true}}", "{env: {HF_TOKEN: [hunter2]}}")
    assert "hunter2" not in refusal(tmp_path, text)
