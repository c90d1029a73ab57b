"""Starter: a short study with comments, which a person goes on to edit."""

from dataclasses import dataclass

from loadgen.errors import BadInput, setting
from loadgen.lab.study.spec.strict_model import suggestion
from loadgen.lab.study.spec.study_text import name_of

TEMPLATE = """\
# A study of {engine}. docs/studies.md describes every key.
#   loadgen tune plan {file}     what it would start, and how long it may take
#   loadgen tune run {file}      run it, or resume it
#   loadgen tune report {file}   write the page
name: {name}  # also the name of the store, {name}.store
models:  # variants of the model: a folder, a hub name or a .gguf file
  base: {model}
hardware:  # a run compares it with this machine
  name: {hardware}
  devices: {devices}  # accelerators in the box
engines:
  {engine}: {settings}  # of all its servers: version, knobs, raw flags, env
workloads:  # loads by name: presets, or flags of `loadgen run`
  chat:
    dataset_name: random
    random_input_len: {input_len}
    random_output_len: {output_len}
    num_prompts: {requests}
    max_concurrency: {cap}
objective:  # `slo: "ttft_p99<500ms"` adds limits that an arm must meet
  metric: total_tps_per_box
  workload: chat
baseline: {{engine: {engine}, model: base}}  # all arms are compared with it
decision:
  min_effect: 5%  # a smaller gain counts as none
  repeats: {{least: 2, most: {most}}}  # fresh starts of each arm
budget:
  hours: {hours}
  quiet_wait: {quiet_wait}  # seconds that a start waits for a quiet machine
stages:  # tried in order; each starts from the winner so far
{stages}"""
SIM_STAGES = """\
  - name: steps  # a choice: arms by name, each with its changes
    choice:
      short: {raw: [--step-base-ms 5]}
  - name: sequences  # a grid: every combination of values
    grid: {max_seqs: [8]}
"""
STAGES = """\
  - name: sequences  # a grid: every combination of values
    grid: {max_seqs: [64, 512]}
  - name: prefix cache  # a choice: arms by name, each with its changes
    choice:
      without: {knobs: {prefix_cache: false}}
"""
CPU_STAGES = """\
  - name: slots  # a grid: every combination of values
    grid: {max_seqs: [1, 8]}
  - name: threads  # a choice: arms by name, each with its changes
    choice:
      two threads: {raw: [--threads 2]}
"""


@dataclass(frozen=True, slots=True)
class _Starter:
    """What differs between engines.

    Attributes:
        model: A model, and a comment if a person must change it.
        hardware: The hardware, likewise.
        devices: Accelerators in the box.
        settings: Settings of all servers.
        lengths: Input and output tokens of a request.
        load: The number of requests, and how many are in flight.
        most: The most fresh starts of an arm.
        hours: The most time.
        quiet_wait: Seconds that a start waits for a quiet machine.
        stages: The stages.
    """

    model: str = "Qwen/Qwen3-0.6B  # CHECK: your model"
    hardware: str = "NVIDIA H100 80GB HBM3  # CHECK: as nvidia-smi prints it"
    devices: int = 1
    settings: str = "{}"
    lengths: tuple[int, int] = (512, 128)
    load: tuple[int, int] = (500, 128)
    most: int = 5
    hours: float = 2
    quiet_wait: int = 20
    stages: str = STAGES


STARTERS = {
    "sim": _Starter(
        model="sim",
        hardware="a simulator",
        devices=0,
        settings="{raw: [--step-base-ms 20]}",
        lengths=(16, 8),
        load=(80, 20),
        most=3,
        hours=0.25,
        quiet_wait=0,
        stages=SIM_STAGES,
    ),
    "vllm": _Starter(),
    "sglang": _Starter(),
    "trtllm": _Starter(),
    "llamacpp": _Starter(
        model="./model.gguf  # CHECK: your model",
        hardware="a CPU",
        devices=0,
        lengths=(64, 16),
        load=(8, 4),
        stages=CPU_STAGES,
    ),
}


def starter(engine: str, file: str, name: str) -> str:
    """Return a study of an engine.

    Args:
        engine: The engine.
        file: The path of the study's file.
        name: The name of the study.

    Raises:
        BadInput: There is no such study for the engine.
    """
    chosen = STARTERS.get(engine)
    if chosen is None:
        remedy = suggestion(engine, [*STARTERS]) or f"use one of {', '.join(STARTERS)}"
        raise BadInput(setting.engine, f"no study for {engine!r} is ready", remedy)
    input_len, output_len = chosen.lengths
    requests, cap = chosen.load
    return TEMPLATE.format(
        engine=engine,
        file=file,
        name=name_of(name),
        model=chosen.model,
        hardware=chosen.hardware,
        devices=chosen.devices,
        settings=chosen.settings,
        input_len=input_len,
        output_len=output_len,
        requests=requests,
        cap=cap,
        most=chosen.most,
        hours=chosen.hours,
        quiet_wait=chosen.quiet_wait,
        stages=chosen.stages,
    )
