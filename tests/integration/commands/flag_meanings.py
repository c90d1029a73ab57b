"""The meaning here of flags of other tools that are accepted, and are no settings of loadgen,
for docs/other-flags.md.
"""

from loadgen.cli.compat.sglang import DATASETS

VLLM = {
    "--blazedit-max-distance": "`--hf-where norm_distance<=N`",
    "--blazedit-min-distance": "`--hf-where norm_distance>=N`",
    "--custom-skip-chat-template": "the same; the default without `--compat`",
    "--enable-multimodal-chat": "no effect: the messages are the same with and without it",
    "--endpoint-type": "`--backend`, its new name",
    "--hf-text-column": "`--hf-column prompt=NAME`",
    "--input-len": "`--random-input-len`",
    "--logprobs": "`--extra-body '{\"logprobs\": N}'`, only with completions",
    "--max-model-len": "no effect if random prompts and their answers are not longer; else "
    "refused: nothing is left out",
    "--multi-turn": "`--dataset-name multi_turn`; --num-prompts is then the number of sessions",
    "--multi-turn-concurrency": "`--max-concurrency`",
    "--multi-turn-delay-ms": "`--think-time`, ms",
    "--multi-turn-max-turns": "`--turns MIN:MAX`",
    "--multi-turn-min-turns": "`--turns MIN:MAX`",
    "--multi-turn-num-turns": "`--turns N`",
    "--no-self-timed": "`--trace-times ignore`",
    "--no-steady-state": "`--steady-state-threshold 0`",
    "--no-stream": "no effect: rows are shuffled as in a stream, which is the same for fewer than "
    "1000 rows",
    "--num-runs": "N runs at the same rate or concurrency, each with prompts of its own, and their "
    "mean, deviation and range",
    "--output-len": "the output length of the chosen data set",
    "--per-turn-input-len": "`--random-input-len FIRST,FURTHER,FURTHER`, with --multi-turn",
    "--plot-timeline": "`--html NAME.timeline.html`, with the name of --result-filename: the run "
    "over time, and each request as a dot",
    "--random-mm-base-items-per-request": "`--images N`, the mean number",
    "--random-mm-bucket-config": "`--image-sizes`; buckets of several frames, which are videos, "
    "are refused",
    "--random-mm-limit-mm-per-prompt": "`--images MIN:MAX`, at most the number of `image`",
    "--random-mm-num-mm-items-range-ratio": "`--images MIN:MAX`, this share below and above the "
    "mean",
    "--reset-prefix-cache": "`--cache cold`, before each run and after its warm-up",
    "--self-timed": "`--trace-times keep`",
    "--skip-chat-template": "the same; the default without `--compat`",
    "--skip-tokenizer-init": "no effect: a tokenizer is loaded only if it is needed",
    "--spec-bench-category": "`--hf-where category=NAME`",
    "--spec-bench-output-len": "`--hf-output-len`",
    "--speed-bench-category": "`--hf-where category=NAME`",
    "--speed-bench-config": "`--hf-subset`",
    "--speed-bench-dataset-subset": "`--hf-subset`",
    "--speed-bench-output-len": "`--hf-output-len`",
    "--sweep-max-concurrency": "`--max-concurrency` with several values",
    "--sweep-num-prompts-factor": "`--num-prompts` of each run: N times its concurrency",
    "--sweep-request-rate": "`--request-rate` with several values",
    "--sweep-summary-percentiles": "`--metric-percentiles`, for the results of all runs",
    "--timed-trace-chunk-hash-size": "`--trace-block-size`",
    "--timed-trace-label-hash-ids": "`--trace-column blocks=NAME`",
    "--timed-trace-label-input-length": "`--trace-column input=NAME`",
    "--timed-trace-label-output-length": "`--trace-column output=NAME`",
    "--timed-trace-label-timestamp": "`--trace-column time=NAME`",
    "--timed-trace-sec-multiplier": "`--trace-time-unit`",
    "--timeline-itl-thresholds": "no effect: colors of a plot",
    "--tokenizer-mode": "no effect: a tokenizer.json is used; others than auto, hf and slow are "
    "refused without one",
    "--trust-remote-code": "no effect: loadgen runs no code of a model",
    "--use-beam-search": "no effect, in vLLM's own tool either",
}
SGLANG = {
    "--apply-chat-template": "`--render-chat-template without-bos`; no effect on other data sets "
    "than sharegpt and custom",
    "--backend": "sglang: its own API; sglang-oai, vllm, lmdeploy: completions; with -chat: chat; "
    "others are refused",
    "--cache-report": "`--extra-body` with return_cached_tokens_details, with sglang-oai and "
    "sglang-oai-chat; cached tokens are read anyway",
    "--dataset-name": f"{', '.join(DATASETS)}; others are refused",
    "--disable-ignore-eos": "`--no-ignore-eos`",
    "--extra-request-body": "`--extra-body`",
    "--flush-cache": "`--cache cold`",
    "--flush-cache-timeout": "no effect: with `--cache cold`, SGLang waits for 60 s until no "
    "request runs",
    "--gsp-fast-prepare": "no effect: prompts are made fast anyway",
    "--gsp-group-distribution": "uniform: groups of equal size; zipf: `--prefix-zipf` with "
    "--gsp-zipf-alpha",
    "--gsp-num-groups": "`--prefix-repetition-num-prefixes`",
    "--gsp-num-turns": "`--turns`; the prefix is a system message of its own",
    "--gsp-ordered": "`--disable-shuffle`; no effect with zipf, whose draws have no order",
    "--gsp-output-len": "`--prefix-repetition-output-len`",
    "--gsp-prewarm-concurrency": "no effect: at most 32 prefixes are in flight, or "
    "--max-concurrency",
    "--gsp-prewarm-prefixes": "`--cache warm`; refused with --flush-cache",
    "--gsp-prompts-per-group": "`--num-prompts`, for all groups and turns together",
    "--gsp-question-len": "`--prefix-repetition-suffix-len`",
    "--gsp-range-ratio": "lengths from R * LEN to LEN: `--prefix-buckets GROUPSxMIN-MAX`, "
    "`--prefix-repetition-suffix-len MIN:MAX` and `--prefix-repetition-output-len MIN:MAX`",
    "--gsp-system-prompt-len": "`--prefix-repetition-prefix-len`",
    "--gsp-zipf-alpha": "`--prefix-zipf`",
    "--image-count": "`--images`",
    "--image-format": "the same; jpeg is jpeg:85",
    "--image-resolution": "`--image-sizes`",
    "--logprob-start-len": "`--extra-body` with logprob_start_len, only with SGLang's own API",
    "--lora-name": "`--lora-modules`",
    "--lora-request-distribution": "`--lora-assignment`: random, round-robin or skewed",
    "--lora-zipf-alpha": "`--lora-assignment skewed:ALPHA`",
    "--mooncake-slowdown-factor": "`--time-scale`, with the reciprocal value",
    "--mooncake-workload": "no effect beside `--dataset-path`; without it refused",
    "--output-details": "`--save-detailed`",
    "--output-file": "`--result-filename FILE --append-result`; without it nothing is saved",
    "--pd-separated": "no effect: disaggregated servers are measured like any other",
    "--profile-activities": "`--profile-body` with activities",
    "--profile-by-stage": "`--profile-body` with profile_by_stage, and with 5 num_steps unless "
    "they are given",
    "--profile-decode-url": "`--profile-url`",
    "--profile-num-steps": "`--profile-body` with num_steps",
    "--profile-output-dir": "`--profile-body` with output_dir; the traces lie in this folder "
    "itself, not in one named by the time",
    "--profile-prefill-url": "`--profile-url`",
    "--profile-prefix": "`--profile-body` with profile_prefix",
    "--profile-stages": "`--profile-body` with profile_stages",
    "--profile-start-step": "`--profile-body` with start_step",
    "--profile-steps": "`--profile-body` with num_steps",
    "--random-image-count": "`--images 1:COUNT`",
    "--random-range-ratio": "lengths from R * LEN to LEN, as SGLang draws them: "
    "`--random-input-len A:B`",
    "--return-logprob": "`--extra-body` with return_logprob, only with SGLang's own API",
    "--return-routed-experts": "`--extra-body` with return_routed_experts, only with SGLang's own "
    "API",
    "--rust-client": "no effect: the client is compiled anyway",
    "--rust-worker-threads": "no effect: the client is compiled anyway",
    "--speed-bench-category": "`--hf-where category=NAME`",
    "--speed-bench-output-len": "`--hf-output-len`",
    "--tag": "`--metadata tag=TAG`",
    "--token-ids-logprob": "`--extra-body` with token_ids_logprob, only with SGLang's own API",
    "--tokenize-prompt": "`--prompt-token-ids`, also with completions",
    "--top-logprobs-num": "`--extra-body` with top_logprobs_num, only with SGLang's own API",
    "--trust-remote-code": "no effect: loadgen runs no code of a model",
    "--use-trace-timestamps": "no effect: a trace keeps its times",
    "--warmup-requests": "`--num-warmups`",
}
INFERENCEX = VLLM | {
    "--dataset": "`--dataset-name sharegpt --dataset-path FILE`",
    "--random-range-ratio": "lengths from R * LEN to LEN: `--random-input-len A:B`",
    "--use-chat-template": "`--render-chat-template whole --input-len-counts server`: it is part "
    "of the length",
}
