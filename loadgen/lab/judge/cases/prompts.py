"""Cases of prompts: what was asked for against what was sent."""

from dataclasses import replace

from loadgen.lab.judge.case import (
    Ask,
    Case,
    Load,
    Plan,
    Play,
    add,
    good,
    paced,
    steady,
    streamed,
    usage,
)

FEW = Load(20, 20, output_tokens=4)


def template(ask: Ask) -> Plan:
    """The usage counts 10 tokens more than the text has: those of a chat template."""
    answer = good(ask)
    closing = usage(prompt_tokens=ask.prompt_tokens + 10, completion_tokens=ask.request.tokens)
    plan = streamed(paced(answer.tokens), answer.finish, closing, answer.done)
    return replace(plan, more_input=10)


def _prompts(
    name: str,
    does: str,
    source: str,
    figures: tuple[str, ...],
    load: Load = FEW,
    play: Play = steady,
    *,
    chat: bool = False,
) -> None:
    add(Case(name, "prompts", does, source, play, figures, load, chat=chat))


_prompts(
    "input-length",
    "Prompts of 128 tokens are asked for.",
    "InferenceX#356 (D12), inference-perf#572 (D11)",
    ("sent_input_tokens", "input_tokens"),
    Load(20, 20, input_tokens=128, output_tokens=4),
)
_prompts(
    "long-input",
    "Prompts of 2,048 tokens are asked for.",
    "InferenceX#356 (D12)",
    ("sent_input_tokens", "input_tokens"),
    Load(8, 10, input_tokens=2048, output_tokens=4),
)
_prompts(
    "output-length",
    "Answers of 33 tokens are asked for.",
    "inference-perf#572 (D11)",
    ("sent_output_tokens", "output_tokens"),
    Load(10, 20, output_tokens=33),
)
_prompts(
    "distinct",
    "No prompt may come twice.",
    "inference-perf#539, #509 (D9)",
    ("sent_distinct",),
)
_prompts(
    "no-shared-prefix",
    "Prompts may share no prefix.",
    "inference-perf#570, #569 (D10)",
    ("sent_shared_prefix",),
)
_prompts(
    "template",
    "The usage has 10 input tokens more: a chat template's.",
    "vllm-bench calculator.rs (D30)",
    ("input_tokens",),
    play=template,
    chat=True,
)
