"""Flags of guidellm, AIPerf, older vLLM releases and load generators for websites, with their
equivalents in loadgen.

They are not accepted, since most differ in detail; an error message names the equivalent.
"""

OLDER_VLLM = {"--dataset": "`--dataset-name sharegpt --dataset-path FILE`"}
FORKS = {"--run-eval": "a tool for the quality of answers: loadgen does not judge them"}
WEB = {  # Locust, k6, wrk and others
    **dict.fromkeys(
        ("--vus", "--clients", "--connections"),
        "`--max-concurrency`, the requests in flight; `--users`, if they think",
    ),
    **dict.fromkeys(("--rps", "--qps", "--arrival-rate"), "`--request-rate`"),
    **dict.fromkeys(("--requests", "--iterations"), "`--num-prompts`"),
    "--run-time": "`--duration`",
}
GENAI_PERF = {  # AIPerf's predecessor, where its flags differ
    "-m": "`--model`",
    "-u": "`--base-url`, with http://",
    "--service-kind": "`--backend openai-chat` or `openai`",
    "--measurement-interval": "`--duration`",
    "--generate-plots": "`--html FILE.html`, which draws the run",
}
PROFILES = (
    "`constant` is `--request-rate R --burstiness inf`, `poisson` is `--request-rate R`, "
    "`concurrent` and `synchronous` are `--max-concurrency N`, `throughput` needs neither; `sweep` "
    "is `loadgen search`, which chooses the rates itself, or `--request-rate 1,2,4` with your own "
    "rates"
)
GUIDELLM_PROFILES = ("constant", "poisson", "concurrent", "synchronous", "throughput", "sweep")
NOT_NEEDED = "not needed: "  # the prefix of notes on flags that loadgen does not need
GUIDELLM = {
    "--target": "`--base-url`, without /v1",
    "--model": "`--model`",
    "--processor": "`--tokenizer`",
    "--tokenizer": "`--tokenizer NAME` for model=NAME",
    "--profile": f"other flags: {PROFILES}",
    "--rate-type": f"other flags: {PROFILES}",
    "--rate": "`--request-rate`, or `--max-concurrency` for concurrent; several values, as 1,2,4, "
    "make one run each",
    "--constraint": "`--num-prompts N` for kind=max_requests,count=N, `--duration S` for "
    "kind=max_duration,seconds=S, `--stop-when` with `errors>=N` or `error_rate>SHARE` for errors",
    "--max-requests": "`--num-prompts`",
    "--max-seconds": "`--duration`",
    "--max-errors": '`--stop-when "errors>=N"`',
    "--max-error-rate": '`--stop-when "error_rate>SHARE"`; `--max-error-rate SHARE` is checked at '
    "the end",
    "--warmup": "`--num-warmups`; the steady rate excludes ramp and tail anyway",
    "--cooldown": "not needed: the steady rate excludes the tail",
    "--rampup": "`--ramp-up-strategy linear --ramp-up-start-rps A --ramp-up-end-rps B`",
    "--data": "`--dataset-name random --random-input-len N --random-output-len M` for "
    "prompt_tokens=N,output_tokens=M, and `normal:MEAN:STDEV:MIN:MAX` as a length for its stdev, "
    "min and max; a file with `--dataset-name jsonl|csv --dataset-path FILE`; a name on the hub "
    "with `--dataset-name hf`",
    "--data-args": "`--hf-subset`, `--hf-split`",
    "--data-column-mapper": "`--hf-column`",
    "--data-samples": "`--num-prompts`",
    "--data-sampler": "not needed: `jsonl` and `csv` are read in order; `custom` and `hf` are "
    "shuffled",
    "--random-seed": "`--seed`",
    "--seed": "`--seed N` for value=N",
    "--backend": "`--backend openai-chat` or `openai`; `--base-url` for target=URL, `--model` for "
    "model=NAME",
    "--backend-kwargs": "`--header`, `--api-key`, `--extra-body`, `--insecure`",
    "--request-type": "`--backend openai-chat` for chat_completions, `openai` for text_completions",
    "--output": "`--save-result --result-filename FILE` for kind=json,path=FILE",
    "--output-path": "`--save-result --result-filename FILE`",
    "--output-dir": "`--result-dir`",
    "--outputs": "`--save-result`, `--records`, `--hlog`, `--json`",
    "--sample-requests": "`--records`, which keeps all",
    "--metrics": "`--goodput` for its slo",
    "--label": "`--metadata KEY=VALUE`",
    "--override": "`--request-rate 1,2,4` or `--max-concurrency 1,2,4`; for other settings "
    "`loadgen tune`",
    "--scenario": "`--workload`, or `--config FILE.yaml`",
    "--detect-saturation": "not needed: every report says OVERLOADED if requests pile up",
    "--disable-console": "`--quiet`",
    "--disable-progress": "`--quiet`",
}
AIPERF = {
    "--url": "`--base-url`, with http:// and without /v1; repeat it for several servers",
    "--model": "`--model`",
    "--model-names": "`--model`, one per run",
    "--tokenizer": "`--tokenizer`",
    "--tokenizer-trust-remote-code": "not needed: loadgen runs no code of a model",
    "--endpoint-type": "`--backend openai-chat` for chat, `openai` for completions",
    "--endpoint": "`--endpoint`",
    "--custom-endpoint": "`--endpoint`",
    "--streaming": "not needed: it is the default; a command without it is `--disable-stream`",
    "--header": "`--header`",
    "--api-key": "`--api-key`",
    "--extra-inputs": "`--extra-body JSON`; `--ignore-eos` for ignore_eos:true",
    "--use-server-token-count": "not needed: token counts of the server are used if it reports "
    "them",
    "--per-chunk-usage": "`--continuous-usage`",
    "--concurrency": "`--max-concurrency`; several values, as 1,2,4, make one run each",
    "--concurrency-ramp-duration": "`--concurrency-profile`, such as 1-64@30s,64@5m",
    "--request-rate": "`--request-rate`; several values, as 1,2,4, make one run each",
    "--num-users": "`--users`",
    "--user-centric-rate": "`--think-time`: the time from an answer to a user's next request, not "
    "between its requests",
    "--request-rate-mode": "`--burstiness`: 1 is poisson, inf is constant",
    "--arrival-pattern": "`--burstiness`: 1 is poisson, inf is constant, other values are the "
    "shape of gamma",
    "--arrival-smoothness": "`--burstiness`",
    "--vllm-burstiness": "`--burstiness`",
    "--request-rate-ramp-duration": "`--ramp-up-strategy`",
    "--fixed-schedule": "`--dataset-name trace`",
    "--replay-speedup": "`--time-scale`",
    "--inter-turn-delay-cap-seconds": "`--max-think-time` with `--dataset-name agentic`",
    "--use-think-time-only": "pauses of `--dataset-name agentic` always begin at the end of an "
    "answer",
    "--trajectory-start-min-ratio": "`--trajectory-start MIN:MAX`, the MIN",
    "--trajectory-start-max-ratio": "`--trajectory-start MIN:MAX`, the MAX",
    "--request-count": "`--num-prompts`",
    "--num-requests": "`--num-prompts`",
    "--benchmark-duration": "`--duration`",
    "--request-timeout-seconds": "`--timeout`",
    "--request-cancellation-rate": "`--disconnect R%@after=TIME`; R% of the requests leave TIME "
    "after they were sent",
    "--request-cancellation-delay": "`--disconnect R%@after=TIME`, the TIME",
    "--warmup-request-count": "`--num-warmups`",
    "--num-warmup-requests": "`--num-warmups`",
    "--reset-kv-cache": "`--cache cold`",
    "--reset-kv-cache-path": "`--call-before PATH`",
    "--cache-bust": "`--cache salted`: one salt for the whole run",
    "--isl": "`--random-input-len`",
    "--isl-stddev": "`--random-input-len normal:MEAN:STDEV`",
    "--synthetic-input-tokens-mean": "`--random-input-len`",
    "--synthetic-input-tokens-stddev": "`--random-input-len normal:MEAN:STDEV`",
    "--prompt-input-tokens-mean": "`--random-input-len`",
    "--prompt-input-tokens-stddev": "`--random-input-len normal:MEAN:STDEV`",
    "--osl": "`--random-output-len`",
    "--osl-stddev": "`--random-output-len normal:MEAN:STDEV`",
    "--output-tokens-mean": "`--random-output-len`",
    "--output-tokens-stddev": "`--random-output-len normal:MEAN:STDEV`",
    "--prompt-output-tokens-mean": "`--random-output-len`",
    "--prompt-output-tokens-stddev": "`--random-output-len normal:MEAN:STDEV`",
    "--prefix-prompt-length": "`--prefix-repetition-prefix-len` with `--dataset-name "
    "prefix_repetition`",
    "--num-prefix-prompts": "`--prefix-repetition-num-prefixes`",
    "--num-dataset-entries": "not needed: each request has a prompt of its own",
    "--shared-system-prompt-length": "`--random-prefix-len`",
    "--input-file": "`--dataset-path`",
    "--custom-dataset-type": "`--dataset-name`: jsonl for single_turn, multi_turn, trace for "
    "mooncake_trace, agentic for weka_trace and tracelab_trace",
    "--public-dataset": "`--dataset-name sharegpt`",
    "--random-seed": "`--seed`",
    "--goodput": "`--goodput ttft:200 tpot:50 e2el:5000`",
    "--server-metrics": "`--server-metrics`",
    "--no-server-metrics": "`--server-metrics off`",
    "--gpu-telemetry": "not needed: GPUs of this machine are read if NVML is installed",
    "--slice-duration": "`--records`, which keeps every time",
    "--artifact-dir": "`--result-dir`",
    "--output-artifact-dir": "`--result-dir`",
    "--profile-export-file": "`--save-result --result-filename FILE`",
    "--profile-export-level": "`--records FILE`",
    "--ui": "`--quiet`, `--disable-tqdm`",
    "--num-profile-runs": "`loadgen tune`, which repeats and compares",
    "--search-space": "`loadgen search` over rate or concurrency, `loadgen tune` over the "
    "server's settings",
    "--workers-max": "`--workers`, the exact number",
    "--log-level": "`--log-level`",
    "--verbose": "`--log-level info`",
}


def equivalent(name: str) -> str | None:
    """Describe what replaces a flag, or a profile of guidellm; None if none of these tools is
    known to have it.
    """
    if name in GUIDELLM_PROFILES:
        return (
            "--profile starts the server's profiler; guidellm's profiles are other flags: "
            f"{PROFILES}"
        ).replace("`", "")
    for tool, words in (
        ("an older vLLM", OLDER_VLLM),
        ("a fork of vLLM's tool", FORKS),
        ("guidellm", GUIDELLM),
        ("AIPerf", AIPERF),
        ("AIPerf or genai-perf", GENAI_PERF),
        ("other tools", WEB),
    ):
        if name in words:
            text = words[name].replace("`", "")
            does = "leave it out: " if text.startswith(NOT_NEEDED) else "use "
            return f"this is a flag of {tool}; {does}{text.removeprefix(NOT_NEEDED)}"
    return None
