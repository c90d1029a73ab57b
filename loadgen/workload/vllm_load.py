"""The load of `vllm bench serve`: its defaults that differ from loadgen's, and its bodies and
prompts.

Settings that are given win over these defaults.
"""

from collections.abc import Callable, Mapping
from typing import Any

from loadgen.config.data import HUB
from loadgen.config.settings import RunSettings
from loadgen.workload import endpoints
from loadgen.workload.endpoints.api import Api
from loadgen.workload.endpoints.generation import CHAT, COMPLETIONS

Given = Mapping[str, Any]

V0_11: dict[str, Any] = {
    "temperature": 0.0,
    "ignore_eos": False,
    "latency_from": "sent",
    "warmup_prompt": "first",
    "ready_check_timeout_sec": 600.0,
}
# VLLM shuffles these data sets without --seed.
FIXED_SEEDS: dict[str, Any] = {"seed_order": 0, "seed_prompts": 0}
V0_32: dict[str, Any] = {"latency_from": "sent", "warmup_prompt": "first"}
TOKEN_DEFAULTS = ("temperature", "ignore_eos")  # of these defaults, what an embedding does not have
TEMPLATED = ("custom", "sonnet")  # data sets to which vLLM applies the chat template by default
RULED = ("random", "sharegpt")  # data sets for which loadgen has the rule of 0.11


def defaults_0_11(fields: Given) -> dict[str, Any]:
    """Return the defaults of 0.11."""
    generates = RunSettings(
        backend=fields.get("backend"), endpoint=fields.get("endpoint")
    ).generates
    defaults = {
        name: value for name, value in V0_11.items() if generates or name not in TOKEN_DEFAULTS
    }
    return defaults | (
        {"dataset_rule": "vllm-0.11"} if fields.get("dataset_name", "random") in RULED else {}
    )


def defaults_0_32(fields: Given) -> dict[str, Any]:
    """Return the defaults of 0.32 and 0.33."""
    return V0_32 | (
        FIXED_SEEDS if fields.get("dataset_name") in ("spec_bench", "speed_bench") else {}
    )


RELEASES: Mapping[str, Callable[[Given], dict[str, Any]]] = {
    "vllm-0.11": defaults_0_11,
    "vllm-0.32": defaults_0_32,
    "vllm-0.33": defaults_0_32,
}


def as_sent(settings: Given, *, templated: bool = True) -> dict[str, Any]:
    """Return the settings with which bodies and prompts are those of vLLM's own tool.

    Completions have the fields that it always sends. It puts the chat template around the prompts
    of some data sets, most of them in a chat, too, which the server then does again.

    Args:
        settings: Fields of `RunSettings`, the defaults included.
        templated: Whether it is to put the chat template around prompts.

    Raises:
        BadInput: The backend is unknown.
    """
    name, api, made = settings.get("dataset_name"), api_of(settings), dict[str, Any]()
    fields = dict(settings)
    if api is CHAT:
        made["content_parts"] = True
    elif api is COMPLETIONS:
        made["repetition_penalty"] = 1.0
        fields["extra_body"] = {"logprobs": None} | (fields.get("extra_body") or {})
    if templated and _is_rendered(settings):
        if name == "sonnet":
            made["input_len_counts"] = "server"
        if name != "sonnet" or api is not CHAT:
            made["render_chat_template"] = "whole"
    return made | fields


def api_of(fields: Given) -> Api:
    """Return the API that the settings choose.

    Raises:
        BadInput: The backend is unknown.
    """
    return endpoints.find(
        RunSettings(backend=fields.get("backend"), endpoint=fields.get("endpoint"))
    )


def _is_rendered(fields: Given) -> bool:
    if fields.get("dataset_name") not in HUB:
        return fields.get("dataset_name") in TEMPLATED
    from loadgen.workload.datasets.huggingface import known_layout

    layout = known_layout(
        fields["dataset_name"], fields.get("hf_name") or fields.get("dataset_path")
    )
    return layout is not None and layout.rendered
