"""Why an engine failed: the cause found in logs of real engines."""

import pickle
from pathlib import Path

import pytest

from loadgen.engines import Crash, EngineFailed
from loadgen.engines.launch.crash_cause import (
    DETERMINISTIC,
    MAX_LINE_CHARS,
    LogFile,
    complaint,
    diagnose,
    stripped,
)

LOGS = Path(__file__).with_name("logs")

VLLM = """\
(APIServer pid=7) INFO 11-21 10:22:30 [api_server.py:1839] vLLM API server version 0.11.0
(EngineCore_DP0 pid=271) INFO 11-21 10:22:38 [core.py:77] Initializing a V1 LLM engine
(Worker_TP1 pid=302) ERROR 11-21 10:22:41 [multiproc_executor.py:597] Traceback (most recent call last):
(Worker_TP1 pid=302) ERROR 11-21 10:22:41 [multiproc_executor.py:597]     raise ValueError(
(Worker_TP1 pid=302) ERROR 11-21 10:22:41 [multiproc_executor.py:597] {cause}
(Worker_TP0 pid=301) ERROR 11-21 10:22:41 [multiproc_executor.py:597] RuntimeError: NCCL error: remote process exited
(EngineCore_DP0 pid=271) ERROR 11-21 10:22:42 [core.py:708] EngineCore failed to start.
(EngineCore_DP0 pid=271) RuntimeError: Worker failed with error '{cause}', please check the stack trace above
(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}
"""  # noqa: E501
SGLANG = """\
[2025-11-21 10:22:30] server_args=ServerArgs(model_path='Qwen/Qwen3-32B')
[2025-11-21 10:22:41 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl/scheduler.py", line 2555, in run_scheduler_process
{cause}

[2025-11-21 10:22:41] Received sigquit from a child process. It usually means the child failed.
"""
TORCH = """\
[rank1]: Traceback (most recent call last):
[rank1]: {cause}
[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:94, remote process exited
"""  # noqa: E501

CAUSES = [
    ("RuntimeError: Unsupported SM version for FP8 block scaling GEMM", "unsupported_hw"),
    ("NotImplementedError: WFP4A16 MoE is unsupported on SM80.", "unsupported_hw"),
    ("ValueError: type fp8e4nv not supported in this architecture", "unsupported_hw"),
    (
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "unsupported_hw",
    ),
    (
        "ValueError: Selected backend CUTLASS_MLA is not valid for this configuration. Reason: []",
        "unsupported_combo",
    ),
    (
        "RuntimeError: FlashInfer backend currently does not support attention sinks",
        "unsupported_combo",
    ),
    (
        "TypeError: XFormersImpl.__init__() got an unexpected keyword argument 'sinks'",
        "unsupported_combo",
    ),
    ("KeyError: 'weight'", "bad_checkpoint"),
    ("KeyError: 'model.layers.0.mlp.down_proj.weight'", "bad_checkpoint"),
    ("ValueError: 64 is not divisible by weight quantization block_n = 128", "bad_checkpoint"),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "oom_load"),
    ("ValueError: No available memory for the cache blocks.", "oom_kv"),
    (
        "ValueError: 5.00 GiB KV cache is needed, which is larger than the available KV cache "
        "memory",
        "oom_kv",
    ),
    ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "oom_kv"),
    (
        "ValueError: Free memory on device (20/80 GiB) is less than desired GPU memory utilization",
        "leaked_memory",
    ),
    (
        "OSError: [Errno 98] error while attempting to bind on address: address already in use",
        "port_in_use",
    ),
    ("RuntimeError: NCCL error: unhandled system error", "distributed"),
    ("RuntimeError: HCCL function error", "distributed"),
    (
        "OSError: nowhere/model is not a local folder and is not a valid model identifier",
        "model_missing",
    ),
    ("ZeroDivisionError: division by zero", "unknown"),
]


@pytest.mark.parametrize(("cause", "kind"), CAUSES)
@pytest.mark.parametrize("log", [VLLM, SGLANG, TORCH], ids=["vllm", "sglang", "torch"])
def test_cause_is_first_exception_of_first_failed_rank(log: str, cause: str, kind: str) -> None:
    crash = diagnose(log.format(cause=cause), 1)
    assert crash.kind == kind
    assert crash.cause == (f"{cause} (exit code 1)" if kind == "unknown" else cause)
    assert crash.transient == (kind not in DETERMINISTIC)


def test_out_of_memory_after_it_was_ready_is_its_own_kind() -> None:
    assert (
        diagnose("torch.OutOfMemoryError: CUDA out of memory.", 1, was_ready=True).kind == "oom_run"
    )


def test_a_wrapper_alone_is_no_cause() -> None:
    crash = diagnose(
        "(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above.",
        1,
    )
    assert (crash.kind, crash.cause) == ("unknown", "exit code 1")


def test_a_wrapper_that_quotes_its_cause_is_unwrapped() -> None:
    crash = diagnose(
        "RuntimeError: Worker failed with error 'KeyError: 'weight'', please check the stack trace",
        1,
    )
    assert (crash.kind, crash.cause) == ("bad_checkpoint", "KeyError: 'weight'")


def test_a_warning_is_no_cause() -> None:
    text = (
        "WARNING 11-21 10:22:38 [a.py:7] ImportError: no attn\nERROR 11-21 10:22:39 [a.py:8] "
        "KeyError: 'weight'"
    )
    assert diagnose(text, 1).cause == "KeyError: 'weight'"


@pytest.mark.parametrize(
    ("text", "code", "kind", "cause"),
    [
        ("", 1, "unknown", "exit code 1"),
        ("loading\n", 2, "bad_flag", "exit code 2"),
        (
            "vllm serve: error: unrecognized arguments: --max-seqs 3",
            2,
            "bad_flag",
            "unrecognized arguments:",
        ),
        ("Error: No such option: --tp", 2, "bad_flag", "No such option"),
        ("error: invalid argument: --foo", 1, "bad_flag", "invalid argument: --foo"),
        ("", -9, "killed", "killed by SIGKILL; the kernel does this when memory runs out"),
        ("", -11, "killed", "killed by SIGSEGV"),
        (
            "terminate called after throwing an instance of 'std::logic_error'",
            -6,
            "killed",
            "(killed by SIGABRT)",
        ),
        (
            "terminate called after throwing an instance of 'std::bad_alloc'",
            -6,
            "oom_load",
            "std::bad_alloc",
        ),
        ("", None, "unknown", "its exit code is unknown"),
    ],
)
def test_crash_without_an_exception_is_diagnosed(
    text: str, code: int | None, kind: str, cause: str
) -> None:
    crash = diagnose(text, code)
    assert crash.kind == kind
    assert cause in crash.cause
    assert crash.code == code


# Real engines, made to fail: their logs without the frames of tracebacks, and exit codes as they
# were.
LOGGED = [
    ("llamacpp_missing", 1, "model_missing", "'/models/model.gguf' (No such file or directory)"),
    ("llamacpp_broken", 1, "bad_checkpoint", "invalid magic characters"),
    ("llamacpp_empty", 1, "bad_checkpoint", "gguf_init_from_reader: failed to read magic"),
    (
        "llamacpp_header",
        1,
        "bad_checkpoint",
        "gguf_init_from_reader: failed to read key-value pairs",
    ),
    (
        "llamacpp_cut",
        1,
        "bad_checkpoint",
        "tensor 'token_embd.weight' data is not within the file bounds",
    ),
    (
        "llamacpp_port",
        1,
        "port_in_use",
        "couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 28124",
    ),
    ("llamacpp_flag", 2, "bad_flag", "unrecognized arguments: --no-such-flag"),
    ("llamacpp_memory", -6, "oom_load", "insufficient memory (attempted to allocate  41.96 MB)"),
    ("vllm_flag", 2, "bad_flag", "unrecognized arguments: --no-such-flag"),
    ("vllm_missing", 1, "model_missing", "'/nowhere/no-such-model'"),
    ("vllm_hub", 1, "model_missing", "Cannot find an appropriate cached snapshot folder"),
    ("vllm_port", 1, "port_in_use", "[Errno 98] Address already in use"),
    ("vllm_weights", 1, "bad_checkpoint", "incomplete metadata, file not fully covered"),
    (
        "vllm_arch",
        1,
        "unsupported_combo",
        "Value error, The checkpoint you are trying to load has model type `nosuch`",
    ),
    ("vllm_memory", 1, "oom_load", "DefaultCPUAllocator: can't allocate memory"),
    ("vllm_worker", 0, "killed", "Worker proc VllmWorker-0 died unexpectedly"),
    ("transformers_flag", 2, "bad_flag", "No such option '--no-such-flag'"),
    ("transformers_missing", 1, "model_missing", "'/nowhere/no-such-model'"),
    ("transformers_hub", 1, "model_missing", "Cannot find the requested files in the disk cache"),
    ("transformers_port", 3, "port_in_use", "('127.0.0.1', 64371): address already in use"),
    ("transformers_weights", 1, "bad_checkpoint", "incomplete metadata, file not fully covered"),
    (
        "transformers_arch",
        1,
        "unsupported_combo",
        "ValueError: The checkpoint you are trying to load has model type",
    ),
    ("transformers_worker", -9, "killed", "killed by SIGKILL"),
]


@pytest.mark.parametrize(("name", "code", "kind", "cause"), LOGGED, ids=[row[0] for row in LOGGED])
def test_logs_of_real_engines(name: str, code: int, kind: str, cause: str) -> None:
    crash = diagnose((LOGS / f"{name}.txt").read_text(), code)
    assert crash.kind == kind
    assert cause in crash.cause
    assert not crash.cause[0].isdecimal()


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("transformers_hang", "cannot reshape tensor of 0 elements"),
        ("transformers_memory", "can't allocate memory"),
    ],
)
def test_complaint_of_a_silent_server_is_found(name: str, cause: str) -> None:
    assert cause in str(complaint((LOGS / f"{name}.txt").read_text()))


def test_an_error_of_one_request_is_not_why_a_server_ended() -> None:
    text = (
        "ERROR:    Exception in ASGI application\nTraceback (most recent call "
        "last):\nKeyError: 'weight'\n"
    )
    chain = (
        "The above exception was the direct cause of the following exception:\nMemoryError: "
        "of one request\n"
    )
    assert complaint(text + chain) is None
    assert (
        complaint(text + chain + "ZeroDivisionError: division by zero\n")
        == "ZeroDivisionError: division by zero"
    )


def test_cause_in_exception_chain_is_the_one_with_a_kind() -> None:
    link = "During handling of the above exception, another exception occurred:\n"
    crash = diagnose(
        f"KeyError: 'new'\n{link}ValueError: m does not recognize this architecture\n", 1
    )
    assert (crash.kind, crash.cause[:10]) == ("unsupported_combo", "ValueError")
    other = (
        f"KeyError: 'new'\nOSError: of another rank\n{link}torch.OutOfMemoryError: CUDA out "
        "of memory\n"
    )
    assert diagnose(other, 1).kind == "unknown"


def test_pydantic_messages_span_several_lines() -> None:
    text = (
        "pydantic_core.ValidationError: 1 validation error for ModelConfig\ndtype\n  Input "
        "should be 'auto'\n"
    )
    assert diagnose(text, 1).cause == (
        "pydantic_core.ValidationError: 1 validation error for ModelConfig: Input should be "
        "'auto' (exit code 1)"
    )


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[1;36m(EngineCore_0 pid=1)\x1b[0;0m KeyError: 'weight'",
        "(EngineCore_DP0 pid=271) ERROR 11-21 10:22:42 [core.py:708] KeyError: 'weight'",
        "[rank0]: KeyError: 'weight'",
        "[rank0]:[E1121 10:22:42.123 ProcessGroup.cpp:1] KeyError: 'weight'",
        "[2025-11-21 10:22:41 TP0] KeyError: 'weight'",
        "[11/21/2025-10:22:41] [TRT-LLM] [RANK 0] [E] KeyError: 'weight'",
        "2025-11-21 10:22:41,123 ERROR KeyError: 'weight'",
        "2025-11-21T10:22:41.123456Z ERROR KeyError: 'weight'",
        "0.00.005.247 E KeyError: 'weight'",
    ],
)
def test_log_prefixes_are_stripped(line: str) -> None:
    assert stripped(line) == "KeyError: 'weight'"


@pytest.mark.parametrize(
    "line", ["[Errno 2] No such file", "10 requests", "(a remark)", "INFOrmation"]
)
def test_text_that_is_no_log_prefix_is_kept(line: str) -> None:
    assert stripped(f"OSError: {line}") == f"OSError: {line}"


def test_engine_failed_names_log_and_can_be_pickled() -> None:
    failed = EngineFailed(
        "vllm", Crash("hang", "no answer", None), Path("/logs/engine.log"), ["the end"]
    )
    assert str(failed) == "vllm: hang: no answer; its log /logs/engine.log ends:\nthe end"
    again = pickle.loads(pickle.dumps(failed))
    assert (str(again), again.crash, again.log) == (str(failed), failed.crash, failed.log)


def test_endless_line_is_cut_to_its_beginning(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "engine.log")
    log.path.write_text("first\n" + "x" * 5000)
    assert log.tail(2) == ["first", "x" * MAX_LINE_CHARS]
