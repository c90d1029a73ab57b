"""Checks of what the settings ask of requests and answers."""

from typing import Any

from loadgen.config import slo
from loadgen.config.data import MULTI_TURN, RERANK
from loadgen.config.option import SAMPLING, options
from loadgen.config.output import QUEUE_METRICS
from loadgen.config.request_class import LORA_MODULES
from loadgen.config.run_fields import RunFields
from loadgen.config.slo import StopCondition
from loadgen.config.target import TargetSettings
from loadgen.errors import BadInput, setting

PROMPTS = {"messages", "prompt"}  # fields of a request body; an API may have further ones
NO_TIMES = "tokens of an answer in one piece have no times"
NO_TOKENS = "embeddings, pooling and rerank generate no tokens"
WITHOUT_TOKENS = ("e2el", "error", *QUEUE_METRICS)  # metrics of answers without tokens
JSON_ENCODINGS = ("float", "base64")  # of embeddings
# Fields of a request body for one answer.
SINGLE_ANSWER = {"n": 1, "best_of": 1, "use_beam_search": False}


def check(settings: RunFields) -> None:
    """Check fields of a request body, adapters, who leaves and retries, and what answers in one
    piece cannot have.

    Raises:
        BadInput: The first value that cannot be used.
    """
    check_fields(
        setting.extra_body, settings.extra_body or {}, disable_stream=settings.disable_stream
    )
    _check_lora(settings)
    if not settings.streams:
        _check_without_stream(settings)
    elif settings.random_batch_size > 1 or settings.dataset_name == RERANK:
        remedy = f"use {setting.backend} vllm-rerank, openai-embeddings or vllm-pooling"
        if settings.dataset_name == RERANK:
            raise BadInput(
                setting.dataset_name, f"{RERANK} needs an API that takes several texts", remedy
            )
        raise BadInput(setting.random_batch_size, "an answer of tokens is to one prompt", remedy)


def _check_without_stream(settings: RunFields) -> None:
    """Refuse what asks for times of tokens, where answers come in one piece; and for tokens,
    where they have none.
    """
    reason = NO_TIMES
    excluded = ["continuous_usage", "first_token_timeout"]
    if not settings.generates:
        sampling = [
            option.name for option in options(TargetSettings).values() if option.group == SAMPLING
        ]
        sampling.remove("ignore_eos")  # vLLM sends it where it is given
        reason = NO_TOKENS
        excluded += ["disable_stream", "turns", *sampling]
    for name in excluded:
        if getattr(settings, name) != getattr(RunFields, name):
            raise BadInput(setting(name), reason, "leave it out")
    if settings.dataset_name == MULTI_TURN and not settings.generates:
        problem = f"{NO_TOKENS}, which {MULTI_TURN} repeats"
        raise BadInput(setting.dataset_name, problem, "use random, jsonl or custom")
    for end in settings.early_ends:
        if end.tokens is not None:
            problem = f"tokens={end.tokens}, where answers come in one piece"
            raise BadInput(setting(end.name), problem, "write a time: SHARE%@after=TIME")
    metrics = [(setting.goodput, metric) for metric in slo.parse_goodput(settings.goodput)]
    metrics += [
        (setting.slo, limit.metric) for limit in (slo.parse(settings.slo) if settings.slo else ())
    ]
    conditions = StopCondition.parse(settings.stop_when) if settings.stop_when else ()
    metrics += [(slo.STOP_WHEN, condition.limit.metric) for condition in conditions]
    if settings.percentile_metrics != RunFields.percentile_metrics:
        metrics += [
            (setting.percentile_metrics, metric)
            for metric in settings.percentile_metrics.split(",")
        ]
    for name, metric in metrics:
        if metric not in WITHOUT_TOKENS:
            problem = f"{metric} needs tokens: {reason}"
            raise BadInput(name, problem, "use e2el, the latency of the whole answer")
    if (form := (settings.extra_body or {}).get("encoding_format", "float")) not in JSON_ENCODINGS:
        problem = f"encoding_format {form!r} is not JSON"
        raise BadInput(setting.extra_body, problem, f"use {' or '.join(JSON_ENCODINGS)}")


def _check_lora(settings: RunFields) -> None:
    if not settings.lora_modules:
        return
    if not all(settings.lora_modules):
        raise BadInput(
            LORA_MODULES, "a name is empty", "give the names that the server lists in /v1/models"
        )
    if len(set(settings.lora_modules)) < len(settings.lora_modules):
        remedy = f"give each once; {setting.classes} gives one a larger share"
        raise BadInput(LORA_MODULES, "a name is given twice", remedy)


def check_fields(where: str, body: dict[str, Any], *, disable_stream: bool) -> None:
    """Check fields that are merged into the body of a request.

    Args:
        where: The flag, or the row of a file, that gives them.
        body: The fields.
        disable_stream: Whether answers are asked for in one piece.

    Raises:
        BadInput: One of them would change what loadgen itself decides of a request.
    """
    if "stream" in body and body["stream"] != (not disable_stream):
        raise BadInput(
            where,
            f"stream: {str(body['stream']).lower()}",
            f"leave it out, or use {setting.disable_stream}",
        )
    for field in PROMPTS & set(body):
        raise BadInput(
            where,
            f"{field} would replace every prompt",
            f"give prompts with {setting.dataset_name}",
        )
    sampling = body.get("sampling_params", {})
    if not isinstance(sampling, dict):
        raise BadInput(
            where, "sampling_params is not a JSON object", 'write for example {"min_p": 0.1}'
        )
    for field, single in SINGLE_ANSWER.items():
        if (value := (body | sampling).get(field)) is not None and value != single:
            problem = f"{field}: {value!r} requests several answers to a prompt"
            raise BadInput(where, problem, "leave it out: tokens of several answers arrive mixed")
