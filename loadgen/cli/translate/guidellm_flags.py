"""The flags of guidellm 0.2 to 0.8."""

from loadgen.cli.translate.flag_table import (
    NONE,
    SOME,
    Flag,
    blocks,
    differs,
    needless,
    part,
    same,
)

PROFILES = (
    "`constant` is `--request-rate R --burstiness inf`, `poisson` is `--request-rate R`, "
    "`concurrent` is `--max-concurrency N`, `synchronous` is `--max-concurrency 1`, `throughput` "
    "is `--max-concurrency 512` (its cap; 0.8 names its own); `sweep` is `loadgen search`, which "
    "chooses the rates itself, or `--request-rate 1,2,4` with your own rates"
)
WINDOW = (
    "a part of the run that is left out of the statistics, nothing is sent for it; loadgen's "
    "steady rate leaves out ramp and tail by itself"
)
LENGTHS = (
    "`--random-input-len N --random-output-len M` for prompt_tokens=N,output_tokens=M, and "
    "`normal:MEAN:STDEV:MIN:MAX` as a length for its stdev, min and max; a file with "
    "`--dataset-name jsonl|csv --dataset-path FILE`; a name on the hub with `--dataset-name hf`"
)
FLAGS: tuple[Flag, ...] = (
    same("--model", "--model"),
    same("--quiet", "--disable-progress --disable-console-interactive", NONE),
    same("--quiet", "--disable-console --disable-console-outputs", NONE),
    same("--metadata", "--label -l", SOME),
    part("`--seed`; N for value=N", "--random-seed --seed"),
    part("`--base-url`, without /v1", "--target"),
    part("`--tokenizer`; NAME for model=NAME", "--processor --tokenizer"),
    part(f"other flags: {PROFILES}", "--profile --rate-type"),
    part(
        "`--request-rate`, or `--max-concurrency` for concurrent; several values, as 1,2,4, make "
        "one run each",
        "--rate",
        SOME,
    ),
    part(
        "`--num-prompts N` for kind=max_requests,count=N, `--duration S` for "
        "kind=max_duration,seconds=S, `--stop-when` with `errors>=N` or `error_rate>SHARE` for "
        "errors",
        "--constraint",
    ),
    part("`--num-prompts`", "--max-requests"),
    part("`--duration`", "--max-seconds"),
    part('`--stop-when "errors>=N"`', "--max-errors"),
    part(
        '`--stop-when "error_rate>SHARE"`; `--max-error-rate SHARE` is checked at the end',
        "--max-error-rate --max-global-error-rate",
    ),
    part(LENGTHS, "--data"),
    part(
        "`--backend openai-chat` or `openai`; `--base-url` for target=URL, `--model` for "
        "model=NAME",
        "--backend --backend-type",
    ),
    part(
        "`--header`, `--api-key`, `--extra-body`, `--insecure`",
        "--backend-kwargs --backend-args",
    ),
    part(
        "`--backend openai-chat` for chat_completions, `openai` for text_completions",
        "--request-type --request-format",
    ),
    part("`--save-result --result-filename FILE` for kind=json,path=FILE", "--output"),
    part("`--save-result --result-filename FILE`, or `--result-dir`", "--output-path"),
    part("`--result-dir`", "--output-dir"),
    part("`--request-rate 1,2,4` or `--max-concurrency 1,2,4`", "--override", SOME),
    part("`loadgen translate FILE`", "--scenario --config -c"),
    part("several runs of a file", "--benchmarks run"),
    part("`--timeout`; an environment variable in 0.5", "--request-timeout"),
    part("`--ramp-up-strategy linear`", "--rampup"),
    part("`--hf-subset`, `--hf-split`", "--data-args"),
    part("`--hf-column`", "--data-column-mapper"),
    differs("warm-up-is-a-window", WINDOW, "--warmup --warmup-percent"),
    differs("cool-down-is-a-window", WINDOW, "--cooldown --cooldown-percent"),
    needless(
        "random prompts are drawn for each request; `--num-prompts` of a file",
        "--data-samples --data-loader",
    ),
    needless(
        "`jsonl` and `csv` are read in order; `custom` and `hf` are shuffled", "--data-sampler"
    ),
    needless(
        "every report says OVERLOADED if requests pile up",
        "--detect-saturation --default-over-saturation --over-saturation",
        SOME,
    ),
    needless("`--records` keeps all", "--sample-requests --output-sampling"),
    needless(
        "`--save-result`, `--records`, `--hlog`, `--json`",
        "--outputs --output-formats --output-format",
    ),
    needless("`--goodput` for its slo", "--metrics"),
    needless(
        "how guidellm loads data and forms requests",
        "--data-num-workers --data-preprocessor* --data-finalizer --dataloader-kwargs "
        "--processor-args --request-formatter-kwargs",
    ),
    blocks(
        "of `guidellm preprocess` and `guidellm mock-server`, which are no benchmarks",
        "--host --port --workers --ttft-ms* --itl-ms* --output-tokens* --request-latency* "
        "--concat-delimiter --hub-dataset-id --include-prefix-in-token-count --pad-char "
        "--push-to-hub --short-prompt-strategy",
        SOME,
    ),
)
