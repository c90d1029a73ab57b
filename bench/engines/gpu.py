"""`transformers serve` on an NVIDIA GPU, under the launcher: `python -m bench.engines.gpu
[PART]...`.

The model has random weights and the size of Qwen3-0.6B. The interpreter that runs this needs
`transformers[serving]`, torch for CUDA and nvidia-ml-py. Each line of the report is something that
only a GPU can show; the exit code is 1 if one does not hold. Parts: a run, a server beside a
process that holds the memory, and a study of some minutes.
"""

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from bench.engines.environments import CACHE
from bench.engines.tiny_qwen3 import TEMPLATE, VOCABULARY, settings
from loadgen.util.accelerators import Nvml
from tests.helpers.command_line import LOADGEN, environment
from tests.helpers.real_tokenizers import qwen3

GIB = 1 << 30
SIZE = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "max_window_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "tie_word_embeddings": True,
}
MAKE = """
import sys, torch
from transformers import AutoConfig, AutoModelForCausalLM
torch.manual_seed(0)
config = AutoConfig.from_pretrained(sys.argv[1])
AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(sys.argv[1])
"""
HOLD = """
import sys, torch
free, total = torch.cuda.mem_get_info()
held = torch.empty(free - int(sys.argv[1]), dtype=torch.uint8, device="cuda")
print("held", flush=True)
sys.stdin.read()
"""
KNOBS = {"attention_backend": "sdpa", "memory_fraction": 0.5}
INPUT_TOKENS, OUTPUT_TOKENS, REQUESTS = 256, 64, 160
# transformers serve refuses ignore_eos. No token of the vocabulary ends an answer.
ENDLESS = {
    "generation_config": json.dumps({"eos_token_id": VOCABULARY}),
    "max_tokens": OUTPUT_TOKENS,
}
HOUR_PRICE = 2.0
WORKLOAD = {
    "backend": "openai-chat",
    "dataset_name": "random",
    "random_input_len": INPUT_TOKENS,
    "random_output_len": OUTPUT_TOKENS,
    "ignore_eos": False,
    "extra_body": ENDLESS,
    "num_prompts": 48,
    "max_concurrency": 32,
    "seed": 1,
}


def make_model(folder: Path) -> Path:
    """Write the model and its tokenizer; takes some seconds."""
    for name, value in settings().items():
        (folder / name).write_text(json.dumps(value | SIZE if name == "config.json" else value))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    (folder / "tokenizer.json").write_bytes(qwen3(CACHE).read_bytes())
    subprocess.run([sys.executable, "-c", MAKE, str(folder)], check=True)
    return folder


def used_bytes() -> int:
    """Return the memory in use of the first GPU."""
    with Nvml.opened() as nvml:
        memory = nvml.memory()[0] if nvml else None
    if memory is None:
        sys.exit("gpu: NVML reads no GPU here")
    return memory.used


def run(model: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    """Call `loadgen run` on a server that it starts for it."""
    knobs = [f"{name}={value}" for name, value in KNOBS.items()]
    words = [
        "--engine",
        "transformers",
        "--model",
        str(model),
        "--engine-arg",
        *knobs,
        "--tokenizer",
        str(model),
    ]
    words += ["--backend", "openai-chat", "--no-ignore-eos", "--extra-body", json.dumps(ENDLESS)]
    words += [
        "--random-input-len",
        str(INPUT_TOKENS),
        "--random-output-len",
        str(OUTPUT_TOKENS),
        *more,
    ]
    return subprocess.run(
        [*LOADGEN, "run", *words], env=environment(), capture_output=True, text=True, check=False
    )


@contextlib.contextmanager
def memory_held(but_bytes: int) -> Iterator[int]:
    """Hold all of the GPU's free memory but so much while the context lasts; yields the process
    that does.
    """
    command = [sys.executable, "-c", HOLD, str(but_bytes)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline() != "held\n":
            raise RuntimeError("the memory could not be held")
        yield process.pid
        process.stdin.close()


class Report:
    """Prints what holds and what does not.

    Attributes:
        failed: Whether something does not.
    """

    failed = False

    def line(self, holds: object, text: str) -> None:
        """Add a line."""
        self.failed |= not holds
        print(("ok    " if holds else "FAILED"), text, flush=True)


def of_run(report: Report, model: Path) -> None:
    """A run names power, energy, rates per GPU and cost; afterwards the memory is free again."""
    before, begin = used_bytes(), time.monotonic()
    done = run(
        model, "--rate=8", f"--num-prompts={REQUESTS}", f"--gpu-hour-price={HOUR_PRICE}", "--json"
    )
    report.line(
        done.returncode == 0,
        f"run ended with {done.returncode} after {time.monotonic() - begin:.0f} s",
    )
    print(done.stderr[-6000:])
    if done.returncode:
        return
    result: dict[str, Any] = orjson.loads(done.stdout)
    own = result["loadgen"]
    gained, server = own["efficiency"], own["server"]
    report.line(
        own["outcomes"] == {"ok": REQUESTS}, f"outcomes {own['outcomes']}, {own['verdict']}"
    )
    tokens = result["total_output_tokens"]
    report.line(tokens == REQUESTS * OUTPUT_TOKENS, f"{tokens} output tokens")
    report.line(gained["gpus"] == 1, f"efficiency {gained}")
    report.line(
        gained["energy_j"] and gained["energy_coverage"] > 0.9, f"energy {gained['energy_j']} J"
    )
    report.line(server["gpu_levels"], f"levels {server['gpu_levels']}")
    left = used_bytes() - before
    report.line(left < GIB / 4, f"{left / GIB:.2f} GiB more in use after the server than before it")


def of_held_memory(report: Report, model: Path) -> None:
    """A server that fails because another process holds the memory says which one."""
    with memory_held(GIB // 2) as holder:
        done = run(model, "--num-prompts", "1")
        report.line(
            done.returncode,
            f"run ended with {done.returncode} beside process {holder}, which holds the memory",
        )
        report.line(
            re.search(rf"in use before the start.*process {holder}\b", done.stderr),
            done.stderr[-1500:],
        )


def of_study(report: Report, model: Path) -> None:
    """A study is carried out, and its page names the GPU."""
    with Nvml.opened() as nvml:
        assert nvml is not None
        name = nvml.read()[0]["name"]
    study = {
        "name": "transformers",
        "models": {"random": str(model)},
        "hardware": {"name": name, "devices": 1, "gpu_hour_price": HOUR_PRICE},
        "engines": {"transformers": {"knobs": KNOBS}},
        "workloads": {"random": WORKLOAD},
        "objective": {"metric": "total_tps_per_box", "workload": "random"},
        "baseline": {
            "engine": "transformers",
            "model": "random",
            "knobs": {"max_batched_tokens": 256},
        },
        "decision": {"min_effect": 0.05, "repeats": {"least": 2, "most": 2}},
        "budget": {"hours": 0.5, "start_timeout": 120},
        "stages": [{"name": "batch", "grid": {"max_batched_tokens": [4096]}}],
    }
    file, page = model / "study.json", model / "page"
    file.write_text(json.dumps(study))
    for words in (["run", str(file)], ["report", str(file), "-o", str(page)]):
        command = [*LOADGEN, "tune", *words]
        done = subprocess.run(
            command, cwd=model, env=environment(), capture_output=True, text=True, check=False
        )
        report.line(
            done.returncode == 0, f"tune {words[0]}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )
    texts = [path.read_text() for path in page.glob("*.md")]
    report.line(any(name in text for text in texts), "\n".join(texts))


PARTS = {"run": of_run, "memory": of_held_memory, "study": of_study}


def main() -> int:
    """Try it; the exit code is 1 if a line failed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.engines.gpu", description="The launcher on a GPU."
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"instead of all: {', '.join(PARTS)}"
    )
    chosen = parser.parse_args().parts or list(PARTS)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="loadgen-gpu-") as name:
        model = make_model(Path(name))
        for part in chosen:
            PARTS[part](report, model)
    return report.failed


if __name__ == "__main__":
    sys.exit(main())
