"""The flags of AIPerf 0.13, and those of genai-perf, its predecessor, where they differ."""

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

INPUT = "`--random-input-len`, as normal:MEAN:STDEV with a deviation"
OUTPUT = "`--random-output-len`, as normal:MEAN:STDEV with a deviation"
SEARCH = "`loadgen search` finds a rate or concurrency, `loadgen tune` settings of the server"
WARM_UP = "loadgen's `--num-warmups` counts requests, and sends them before the clock starts"
SYNTHESIS = "the trace is sent as it is; change the file instead"
AUDIO = "audio in a chat is not supported; leave it out"
FLAGS: tuple[Flag, ...] = (
    same("--model", "--model --model-names -m", SOME),
    same("--tokenizer", "--tokenizer"),
    same("--api-key", "--api-key"),
    same("--seed", "--random-seed"),
    same("--timeout", "--request-timeout-seconds"),
    same("--num-warmups", "--warmup-request-count --num-warmup-requests"),
    same("--warmup", "--warmup-duration"),
    same("--continuous-usage", "--per-chunk-usage", NONE),
    same("--time-scale", "--replay-speedup --synthesis-speedup-ratio"),
    same("--max-think-time", "--inter-turn-delay-cap-seconds"),
    same("--log-level", "--log-level"),
    part("`--base-url`, with http:// and without /v1; each one again", "--url -u", SOME),
    part("`--backend openai-chat` for chat, `openai` for completions", "--endpoint-type"),
    part("`--endpoint`", "--endpoint --custom-endpoint"),
    part(
        "not needed: it is the default; a command without it is `--disable-stream`",
        "--streaming --stream",
        NONE,
    ),
    part("`--header NAME=VALUE`", "--header -H", SOME),
    part(
        "`--extra-body JSON`; fields with flags of their own are those, such as `--ignore-eos`",
        "--extra-inputs",
        SOME,
    ),
    part("`--max-concurrency`; `--users` for sessions with pauses", "--concurrency"),
    part(
        "`--concurrency-profile`, such as 1-64@30s,64@5m; with a number of requests nothing is "
        "known of the time",
        "--concurrency-ramp-duration",
    ),
    part("`--request-rate`", "--request-rate"),
    part(
        "`--burstiness`: 1 is poisson, inf is constant, other values are the shape of gamma",
        "--arrival-pattern --request-rate-mode",
    ),
    part("`--burstiness`", "--arrival-smoothness --vllm-burstiness"),
    part(
        "`--ramp-up-strategy linear`, over the whole run; or `--rate-profile`, such as 1-10@60s,"
        "10@5m",
        "--request-rate-ramp-duration",
    ),
    part(
        "`--dataset-name trace`, at its own times; its rows have them, if it is not given",
        "--fixed-schedule",
        NONE,
    ),
    part("`--num-prompts`; max(10, 2 x concurrency) without it", "--request-count --num-requests"),
    part("`--duration`", "--benchmark-duration"),
    part(
        "requests in flight at the end: loadgen waits for them, up to `--timeout`",
        "--benchmark-grace-period",
    ),
    part(
        "`--disconnect R%@after=TIME`: R% of the requests leave TIME after they were sent",
        "--request-cancellation-rate",
    ),
    part("`--disconnect R%@after=TIME`, the TIME", "--request-cancellation-delay"),
    part(INPUT, "--isl --synthetic-input-tokens-mean --prompt-input-tokens-mean"),
    part(INPUT, "--isl-stddev --synthetic-input-tokens-stddev --prompt-input-tokens-stddev"),
    part(OUTPUT, "--osl --output-tokens-mean --prompt-output-tokens-mean"),
    part(OUTPUT, "--osl-stddev --output-tokens-stddev --prompt-output-tokens-stddev"),
    part(
        "`--random-prefix-len` for one prefix, else `--prefix-repetition-prefix-len` with "
        "`--dataset-name prefix_repetition`",
        "--prefix-prompt-length --prompt-prefix-length",
    ),
    part(
        "`--prefix-repetition-num-prefixes` with `--dataset-name prefix_repetition`",
        "--num-prefix-prompts --prefix-prompt-pool-size --prompt-prefix-pool-size",
    ),
    part("`--random-prefix-len`", "--shared-system-prompt-length"),
    part(
        "the number of distinct prompts, which are sent again and again (100); those of loadgen "
        "are all distinct",
        "--num-dataset-entries --num-prompts",
    ),
    part(
        "`--num-prompts`, that many times `--turns`; with `--dataset-name multi_turn`",
        "--conversation-num --num-conversations --num-sessions",
    ),
    part(
        "`--turns` with `--dataset-name multi_turn`",
        "--conversation-turn-mean --session-turns-mean",
    ),
    part("`--turns MIN:MAX`, drawn evenly", "--conversation-turn-stddev --session-turns-stddev"),
    part("`--think-time`, in seconds", "--conversation-turn-delay-mean --session-turn-delay-mean"),
    part(
        "`--think-time`, as normal:MEAN:STDEV",
        "--conversation-turn-delay-stddev --session-turn-delay-stddev",
    ),
    part(
        "`--think-time`, multiplied by it", "--conversation-turn-delay-ratio --session-delay-ratio"
    ),
    part("`--images`, of `--dataset-name random-mm`", "--image-batch-size --batch-size-image"),
    part("`--image-sizes HEIGHTxWIDTH`, of `--dataset-name random-mm`", "--image-width-mean"),
    part("`--image-sizes HEIGHTxWIDTH`, of `--dataset-name random-mm`", "--image-height-mean"),
    part("`--image-sizes`, a range", "--image-width-stddev"),
    part("`--image-sizes`, a range", "--image-height-stddev"),
    part("`--image-format`: png or jpeg", "--image-format"),
    part("`--random-batch-size`", "--prompt-batch-size --batch-size-text --batch-size -b"),
    part("`--random-batch-size` with `--dataset-name random-rerank`", "--rankings-passages-mean"),
    part("`--dataset-path`", "--input-file --file -f"),
    part(
        "`--dataset-name`: jsonl for single_turn and multi_turn, trace for mooncake_trace, agentic "
        "for weka_trace",
        "--custom-dataset-type",
    ),
    part("`--dataset-name sharegpt --turns all`", "--public-dataset"),
    part(
        "`--trace-block-size`",
        "--isl-block-size --synthetic-input-tokens-block-size --prompt-input-tokens-block-size",
    ),
    part("`--goodput ttft:200 tpot:50 e2el:5000`", "--goodput -g", SOME),
    part("`--server-metrics`; off for the other", "--server-metrics", SOME),
    part("`--server-metrics off`", "--no-server-metrics", NONE),
    part("`--result-dir`", "--artifact-dir --output-artifact-dir"),
    part("`--save-result --result-filename FILE`", "--profile-export-file"),
    part("`--records FILE` for records and raw", "--export-level --profile-export-level"),
    part("`--quiet` for none", "--ui --ui-type"),
    part("`--num-runs`, each with prompts of its own", "--num-profile-runs"),
    part("`--trajectory-start MIN:MAX`, the MIN", "--trajectory-start-min-ratio"),
    part("`--trajectory-start MIN:MAX`, the MAX", "--trajectory-start-max-ratio"),
    part("`--dataset-name agentic`, for its public traces", "--scenario"),
    part("`--users`", "--num-users"),
    # What makes another load.
    blocks(
        "users with a fixed time between their requests; `--users` has `--think-time` from an "
        "answer to the next request",
        "--user-centric-rate",
    ),
    blocks(AUDIO, "--audio-length-mean", no_op=("0", "0.0")),
    blocks(AUDIO, "--audio-batch-size --batch-size-audio", no_op=("0",)),
    blocks("video is not supported; leave it out", "--video-*", no_op=("0",)),
    blocks("video is not supported; leave it out", "--batch-size-video", no_op=("0",)),
    blocks(
        "pairs of lengths are not drawn together; give each as a class: `--class "
        "NAME:share=0.4,random_input_len=N,random_output_len=M`",
        "--seq-dist --sequence-distribution --isl-osl-pairs",
    ),
    blocks(
        "each session has a text of its own before its turns: write the prompts to a file",
        "--user-context-prompt-length",
    ),
    blocks(
        "requests before their first token have no limit of their own; see `--max-concurrency`",
        "--prefill-concurrency --prefill-concurrency-ramp-duration",
    ),
    blocks(
        f"it chooses loads itself: {SEARCH}",
        "--search-* --bo-constraint-mode --optuna-* --concurrency-min --concurrency-max "
        "--concurrency-steps --isl-min --isl-max --isl-steps --osl-min --osl-max --osl-steps "
        "--sweep-type --sweep-variant --variant --request-rate-series --error-rate-sla "
        "--ttft-sla-ms --tpot-sla-ms --itl-sla-ms --e2e-sla-ms --degradation-* "
        "--slo-attainment-fraction",
    ),
    blocks(SYNTHESIS, "--synthesis-*"),
    blocks(SYNTHESIS, "--max-context-length --dataset-filter --trace-session-sample-ratio"),
    blocks("loadgen does not judge the quality of answers", "--accuracy-*"),
    blocks("AIPerf's own file: give its flags", "--config"),
    blocks(
        "each length is drawn from a range around it: `--random-range-ratio` is not the same "
        "for AIPerf",
        "--random-range-ratio",
    ),
    blocks(
        "the query and the passages of `--dataset-name random-rerank` have one length: "
        "`--random-input-len`",
        "--rankings-passages-stddev --rankings-passages-prompt-token-mean "
        "--rankings-passages-prompt-token-stddev --rankings-query-prompt-token-mean "
        "--rankings-query-prompt-token-stddev",
    ),
    blocks(
        "it warms the caches of agents up first: `--cache warm` sends each prefix once",
        "--agentic-cache-warmup-duration --agentic-warmup-grace-period --burst-phase-starts",
    ),
    blocks(
        "give the data set with `--dataset-name hf` or agentic", "--hf-subset --hf-weka-dataset"
    ),
    blocks(
        "requests that are due while others are open are sent here, always",
        "--open-loop-replay --no-open-loop-replay --open-loop-strict",
        NONE,
    ),
    # What is not the same, in the same load.
    differs("warm-up-by-time", WARM_UP, "--num-warmup-sessions --warmup-*"),
    differs(
        "no-cooldown",
        "loadgen does not pause between runs",
        "--profile-run-cooldown-seconds --parameter-sweep-cooldown-seconds",
    ),
    differs(
        "max-tokens-field",
        "chats have max_completion_tokens here, completions max_tokens",
        "--use-legacy-max-tokens",
        NONE,
    ),
    differs(
        "pauses",
        "pauses of sessions and traces are as recorded; `--max-think-time` cuts those of agents",
        "--max-idle-gap-cap-seconds --system-idle-gap-cap-seconds "
        "--trace-idle-gap-cap-seconds --ignore-trace-delays",
    ),
    differs(
        "cache",
        "`--cache salted` has one salt for the whole run, `--cache cold` empties the "
        "cache before it",
        "--cache-bust --reset-kv-cache*",
    ),
    differs(
        "models", "one model for a run, or one for each `--class`", "--model-selection-strategy"
    ),
    differs(
        "sampling",
        "random prompts are drawn for each request, rows of a file are sent in their order",
        "--dataset-sampling-strategy",
    ),
    differs(
        "connections",
        "connections are kept; see `--warm-connections`",
        "--connection-reuse-strategy",
    ),
    differs(
        "schedule",
        "a trace is sent whole; leave rows out of the file",
        "--fixed-schedule-start-offset --fixed-schedule-end-offset --no-fixed-schedule",
    ),
    differs(
        "corpus",
        "random prompts have words of loadgen's own",
        "--prompt-corpus --random-corpus-style --system-prompt --system-prompt-file",
    ),
    differs(
        "least-tokens",
        "min_tokens is sent as a field of `--extra-body`",
        "--force-min-tokens --no-force-min-tokens",
        NONE,
    ),
    differs(
        "servers",
        "several servers share the requests evenly: `--base-url` for each",
        "--url-strategy",
    ),
    differs(
        "latency",
        "latencies are as measured, with the network",
        "--network-latency-mean --network-latency-automatic --network-latency-ping-interval",
    ),
    # What is not needed.
    needless("loadgen runs no code of a model", "--tokenizer-trust-remote-code", NONE),
    needless("the newest revision, or a path", "--tokenizer-revision"),
    needless("it is the default here", "--use-server-token-count", NONE),
    needless("times begin with the first row here", "--fixed-schedule-auto-offset", NONE),
    needless(
        "AIPerf's own client processes; `--workers` is that of loadgen's",
        "--workers-max --max-workers --record-processor*",
    ),
    needless(
        "GPUs of this machine are read if NVML is installed",
        "--gpu-telemetry --no-gpu-telemetry",
        SOME,
    ),
    needless("`--records` keeps every time", "--slice-duration"),
    needless("every run is one, and a name may be given to its file", "--profile-export-prefix"),
    needless("`--log-level info` says more", "--verbose --extra-verbose -v", NONE),
    needless(
        "answers wait for the connection: `--connect-timeout`, `--ready-check-timeout-sec`",
        "--wait-for-model-*",
    ),
    needless("the server's metrics are kept with the result", "--server-metrics-formats", SOME),
    needless("`--profile` starts the server's profiler", "--server-profiler*"),
    part("not needed: the API is known from --endpoint-type", "--service-kind"),
    needless("images are random colors", "--image-source --image-source-sampling"),
    needless(
        "pauses of `--dataset-name agentic` always begin at the end of an answer",
        "--use-think-time-only",
        NONE,
    ),
    needless("of audio, which is not sent", "--audio-*"),
    needless(
        "what AIPerf makes of several runs; `loadgen compare` compares them",
        "--confidence-level --convergence-* --set-consistent-seed --no-set-consistent-seed "
        "--vary-seed-per-trial --no-vary-seed-per-trial --parameter-sweep-* "
        "--no-parameter-sweep-same-seed --failed-request-threshold "
        "--profile-run-disable-warmup-after-first "
        "--no-profile-run-disable-warmup-after-first",
        SOME,
    ),
    needless(
        "files and displays of AIPerf's own; see `loadgen report`",
        "--auto-plot --no-auto-plot --plot-required --export-http-trace "
        "--export-outputs-json --show-trace-timing --no-sweep-table --stats-interval",
        SOME,
    ),
    needless(
        "not sent to other services; `--prometheus` serves the live numbers",
        "--mlflow-* --wandb-* --otel-*",
        SOME,
    ),
    needless(
        "how AIPerf sends requests",
        "--transport --transport-type --request-content-type --session-header --omit-kv-hints "
        "--uuid-and-strip --apply-chat-template --download-video-content --gen-ai-provider "
        "--unsafe-override --allow-dataset-wrap --no-allow-dataset-wrap",
        SOME,
    ),
    needless("how AIPerf's processes talk to each other", "--zmq-* --api-host --api-port"),
)

GENAI_PERF: tuple[Flag, ...] = (
    part(
        "`--duration`: windows of this many ms are measured until three agree",
        "--measurement-interval -p",
    ),
    needless("three windows must agree within it", "--stability-percentage -s"),
    needless("`--html FILE.html` draws a run", "--generate-plots", NONE),
    needless(
        "of Triton's own client",
        "--backend --grpc-method --server-metrics-url "
        "--server-metrics-urls --checkpoint-dir --enable-checkpointing --max-threads "
        "--async --shared-memory --output-shared-memory-size",
        SOME,
    ),
    needless(
        "`min_tokens` is sent as the length, where the server knows it",
        "--output-tokens-mean-deterministic",
        NONE,
    ),
    blocks(f"it chooses loads itself: {SEARCH}", "--sweep-range --sweep-list"),
    blocks(
        "of `genai-perf analyze`, `process-export-files` and `config`, which measure nothing",
        "--input-directory -d --override-config --version",
    ),
    part("`--max-concurrency` sessions at a time", "--session-concurrency"),
    *FLAGS,
)
