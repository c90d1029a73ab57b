#!/usr/bin/env bash
# Study llamacpp: total_tps_per_box on conversations; each arm is started once.
# Usage: reproduce.sh [baseline|winner]... Its paths are relative to the folder in which it is run.
# The logs of the servers go to $LOGS (.).
set -euo pipefail

logs=$(cd "${LOGS:-.}" && pwd)
servers=()
stop() {
    for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
    for server in "${servers[@]}"; do wait "$server" 2>/dev/null || true; done
    servers=()
}
trap stop EXIT

# serve NAME FOLDER COMMAND...: start a server in a folder.
serve() {
    (cd "$2" && exec "${@:3}") >"$logs/$1.log" 2>&1 &
    servers+=($!)
}

# expect_free HOST PORT: fail if something listens there, which would be measured in place of the server.
expect_free() {
    if (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; then
        echo "something listens at $1:$2 already: end it, or change the port in this script" >&2
        exit 1
    fi
}

# await HOST PORT: wait until a server listens there; fail if the last server ends.
await() {
    for ((second = 0; second < 120; second++)); do
        if (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; then return; fi
        kill -0 "${servers[-1]}" || { echo "the server has ended: see its log" >&2; exit 1; }
        sleep 1
    done
    echo "no server listens at $1:$2" >&2
    exit 1
}

baseline() {  # baseline
    expect_free 127.0.0.1 8000
    serve baseline-0 . env HF_HUB_OFFLINE=1 python3 -P -m loadgen.engines.llamacpp_server -m ./SmolLM2-135M-Instruct.Q4_1.gguf --ctx-size 8192 --parallel 4 --threads 1 --metrics --host 127.0.0.1 --port 8000 --alias SmolLM2-135M-Instruct.Q4_1
    await 127.0.0.1 8000
    loadgen run --base-url http://127.0.0.1:8000 --dataset-name sharegpt --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json --sharegpt-output-len 16 --backend openai-chat --model ./SmolLM2-135M-Instruct.Q4_1.gguf --served-model-name SmolLM2-135M-Instruct.Q4_1 --tokenizer ./SmolLM2-135M-Instruct.Q4_1.gguf --num-prompts 4 --ready-check-timeout-sec 120 --seed 1
}

winner() {  # threads/two threads
    expect_free 127.0.0.1 8000
    serve winner-0 . env HF_HUB_OFFLINE=1 python3 -P -m loadgen.engines.llamacpp_server -m ./SmolLM2-135M-Instruct.Q4_1.gguf --ctx-size 8192 --parallel 4 --threads 2 --metrics --host 127.0.0.1 --port 8000 --alias SmolLM2-135M-Instruct.Q4_1
    await 127.0.0.1 8000
    loadgen run --base-url http://127.0.0.1:8000 --dataset-name sharegpt --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json --sharegpt-output-len 16 --backend openai-chat --model ./SmolLM2-135M-Instruct.Q4_1.gguf --served-model-name SmolLM2-135M-Instruct.Q4_1 --tokenizer ./SmolLM2-135M-Instruct.Q4_1.gguf --num-prompts 4 --ready-check-timeout-sec 120 --seed 1
}

status=0
for arm in ${@:-baseline winner}; do
    case $arm in
    baseline|winner) echo "== $arm"; "$arm" || status=$?; stop ;;
    *) echo "unknown arm $arm: use baseline|winner" >&2; exit 2 ;;
    esac
done
exit "$status"
