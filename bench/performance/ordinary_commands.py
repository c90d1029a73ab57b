"""The commands of `ordinary`: runs of a user's first hours, and runs under stress."""

from dataclasses import dataclass

from tests.helpers.command_line import TOKENIZER

ORDINARY, STRESS, FEW = "ordinary", "overload, failures or burst", "one or two requests"
GROUPS = (ORDINARY, STRESS, FEW)

# sustains 5.5 req/s
SLOW_GPU = "--engine sim --engine-arg=--profile=a100-qwen3-14b --engine-arg=--startup-s=0.1"
# Sustains 15 req/s.
OVERLOAD = (
    "--engine sim --engine-arg max_seqs=8 --rate 40 --num-prompts 300 --random-output-len "
    "64 --slo ttft_p99<500ms"
)
LLAMA = (
    "--base-url {llama} --backend openai-chat --tokenizer none --dataset-name jsonl "
    "--dataset-path prompts.jsonl"
)
FAULTY = (
    f"--base-url {{faulty}} --tokenizer {TOKENIZER} --rate 20 --num-prompts 200 "
    "--random-output-len 32"
)
TEN_A_SECOND = "--rate 10 --num-prompts 130"


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: What tables call it.
        group: One of GROUPS.
        words: What follows `loadgen run`, or `loadgen run --engine sim` if they name no server;
            `{faulty}` and `{llama}` are URLs of servers, files those
            of `write_files`.
        times: How often it runs.
        prefix: What stands before the command.
    """

    name: str
    group: str
    words: str
    times: int = 1
    prefix: str = ""


COMMANDS = (
    Command("first command of docs/start.md", ORDINARY, "--rate 100 --num-prompts 500"),
    Command("1,024 + 128 tokens, 20/s", ORDINARY, "--rate 20 --num-prompts 200"),
    Command("prose, 30/s", ORDINARY, "--dataset-name prose --rate 30 --num-prompts 300"),
    Command(
        "prefix_repetition, 30/s",
        ORDINARY,
        "--dataset-name prefix_repetition --rate 30 --num-prompts 300",
    ),
    Command("multi_turn, 30/s", ORDINARY, "--dataset-name multi_turn --rate 30 --num-prompts 300"),
    Command(
        "normal lengths, 30/s",
        ORDINARY,
        "--random-input-len normal:500:200 --random-output-len 10:200 --rate 30 --num-prompts 300",
    ),
    Command(
        "jsonl",
        ORDINARY,
        "--dataset-name jsonl --dataset-path prompts.jsonl --rate 10 --num-prompts 60",
    ),
    Command(
        "csv", ORDINARY, "--dataset-name csv --dataset-path prompts.csv --rate 10 --num-prompts 60"
    ),
    Command("closed loop of 8", ORDINARY, "--max-concurrency 8 --num-prompts 200"),
    Command("--duration 10, 20/s", ORDINARY, "--duration 10 --rate 20"),
    Command("--workers 2, 40/s", ORDINARY, "--workers 2 --rate 40 --num-prompts 400"),
    Command(
        "ramp from 2/s to 40/s",
        ORDINARY,
        "--ramp-up-strategy linear --ramp-up-start-rps 2 --ramp-up-end-rps 40 --num-prompts 200",
    ),
    *(
        Command(
            f"{slots} slots, 20/s",
            ORDINARY,
            f"--engine sim --engine-arg max_seqs={slots} --rate 20 --num-prompts 300 "
            "--random-input-len 256 --random-output-len 32",
        )
        for slots in (8, 16)
    ),
    Command("10/s, 100 requests", ORDINARY, "--rate 10 --num-prompts 100", times=3),
    Command("100/s, the README's", ORDINARY, "--rate 100 --num-prompts 1000"),
    Command("a100 profile, 2/s", ORDINARY, f"{SLOW_GPU} --rate 2 --num-prompts 40"),
    Command("a100 profile, 3/s", ORDINARY, f"{SLOW_GPU} --rate 3 --num-prompts 60"),
    Command(
        "a100 profile, closed loop of 16",
        ORDINARY,
        f"{SLOW_GPU} --max-concurrency 16 --num-prompts 64",
    ),
    Command(
        "a100 profile, multi_turn",
        ORDINARY,
        f"{SLOW_GPU} --dataset-name multi_turn --rate 1 --num-prompts 36",
    ),
    Command(
        "a100 profile, --workers 2, 3/s",
        ORDINARY,
        f"{SLOW_GPU} --workers 2 --rate 3 --num-prompts 60",
    ),
    Command("llama.cpp, 1/s", ORDINARY, f"{LLAMA} --rate 1 --num-prompts 25"),
    Command(
        "llama.cpp, closed loop of 2", ORDINARY, f"{LLAMA} --max-concurrency 2 --num-prompts 12"
    ),
    Command("10/s, 130 requests", ORDINARY, TEN_A_SECOND, times=4),
    Command("the same, nice -n -15", ORDINARY, TEN_A_SECOND, prefix="nice -n -15"),
    Command("the same, chrt -r 10", ORDINARY, TEN_A_SECOND, prefix="chrt -r 10"),
    Command("the same, taskset -c 0", ORDINARY, TEN_A_SECOND, prefix="taskset -c 0"),
    Command("overload: 40/s, sustained are 15/s", STRESS, OVERLOAD),
    Command("the same, given up after 0.45 s", STRESS, f"{OVERLOAD} --first-token-timeout 0.45"),
    Command("100,000/s, 300 requests", STRESS, "--rate 100000 --num-prompts 300"),
    Command("300 at once", STRESS, "--num-prompts 300"),
    Command("closed loop of 300", STRESS, "--max-concurrency 300 --num-prompts 600"),
    Command("a100 profile, 50 at once", STRESS, f"{SLOW_GPU} --num-prompts 50"),
    Command("40 % HTTP 429", STRESS, FAULTY),
    Command("100 % HTTP 500", STRESS, f"{FAULTY} --header X-Fault=status:500"),
    Command("trace of 2 requests", FEW, "--dataset-name trace --dataset-path trace.jsonl"),
    Command("1 request", FEW, "--num-prompts 1"),
)
