"""Server times: what servers say of the time that they have spent on a request, as data.

A quantity is the time between two moments on the clock of one server:

- front: it has arrived .. it is queued: HTTP, chat template, tokenizer
- queue: it is queued .. the first step begins that computes some of it
- prefill: that step begins .. its first output
- decode: its first output .. its last one
- total: it has arrived .. its last output
- headers: it has arrived at a proxy, or at a provider's edge .. the headers of its response leave

Read in the sources of vLLM 0.33 and llama.cpp, in Groq's client and in the documentation of the
others. vLLM's `time_to_first_token_ms` is its prefill. The functions here define what is true; the
compiled reader (`server_times_scan`) is held to them.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

QUANTITIES = ("front", "queue", "prefill", "decode", "total", "headers")
BEGINS = "-"  # before a quantity: the key says when it begins, another one when it ends
MS, SECONDS = 1e6, 1e9  # ns
MAX_NS = 4e18
USAGE = "usage"
VLLM, SGLANG, NIM = "vllm", "sglang", "nim"
ASKED = {VLLM, SGLANG, NIM}  # they say times if they are started so, which costs them time

Times = dict[str, str | int]  # `by`, and quantities in ns


class Saying(Struct, frozen=True):
    """How one kind of server says times of a request.

    Attributes:
        by: Its name in records.
        where: The member of an event that holds them; USAGE: the usage, wherever that is.
        unit_ns: Of all its times.
        keys: For each key of that member, the quantity.
    """

    by: str
    where: str
    unit_ns: float
    keys: Mapping[str, str]


# The first that says any counts. Those of SGLang need its --enable-metrics; its other times are on
# clocks that differ.
SAYINGS = (
    Saying(
        VLLM,
        "metrics",
        MS,
        {
            "queue_time_ms": "queue",
            "time_to_first_token_ms": "prefill",
            "generation_time_ms": "decode",
        },
    ),
    Saying("llamacpp", "timings", MS, {"prompt_ms": "prefill", "predicted_ms": "decode"}),
    Saying(
        SGLANG,
        "meta_info",
        SECONDS,
        {
            "request_received_ts": BEGINS + "front",
            "api_server_dispatch_finish_ts": "front",
            "queue_time": "queue",
            "forward_entry_time": BEGINS + "prefill",
            "prefill_finished_time": "prefill",
            "e2e_latency": "total",
        },
    ),
    Saying(NIM, "stats", MS, {"time_in_queue_in_ms": "queue"}),
    Saying(
        "cerebras",
        "time_info",
        SECONDS,
        {
            "queue_time": "queue",
            "prompt_time": "prefill",
            "completion_time": "decode",
            "total_time": "total",
        },
    ),
    Saying(
        "groq",
        USAGE,
        SECONDS,
        {
            "queue_time": "queue",
            "prompt_time": "prefill",
            "completion_time": "decode",
            "total_time": "total",
        },
    ),
    Saying(
        "localai",
        USAGE,
        MS,
        {"timing_prompt_processing": "prefill", "timing_token_generation": "decode"},
    ),
)
# Fields of a head with a number of ms: who says it, and the quantity. TGI sends its own with
# answers in one piece only.
FIELDS = {
    "x-envoy-upstream-service-time": ("envoy", "headers"),
    "openai-processing-ms": ("openai", "headers"),
    "x-validation-time": ("tgi", "front"),
    "x-queue-time": ("tgi", "queue"),
    "x-total-time": ("tgi", "total"),
}
TIMING = "server-timing"  # `NAME;dur=MS, ...`, of which those count that are named as a quantity
# All names, of which a row has the number.
BY = tuple(
    dict.fromkeys((*(saying.by for saying in SAYINGS), *(by for by, _ in FIELDS.values()), TIMING))
)
_FIELD = re.compile(
    rf"^({'|'.join((*FIELDS, TIMING))}):[ \t]*([^\r\n]*)".encode(),
    re.IGNORECASE | re.MULTILINE,
)
_TIMING = re.compile(rf"(?:^|,)\s*({'|'.join(QUANTITIES)})\s*;[^,]*?\bdur\s*=\s*\"?([0-9.]+)")


def in_event(event: Mapping[str, Any], usage: Mapping[str, Any] | None) -> Times | None:
    """Return the times that the event says which ends an answer; None: it says none.

    Args:
        event: The event, or an answer in one piece.
        usage: Its usage object; None: it has none.
    """
    for saying in SAYINGS:
        holder = usage if saying.where == USAGE else event.get(saying.where)
        if isinstance(holder, Mapping) and (times := _said(holder, saying)):
            return {"by": saying.by, **times}
    return None


def in_head(head: bytes) -> Times | None:
    """Return the times that the head of a response says; None: it says none."""
    times: Times = {}
    for name, value in _FIELD.findall(head):
        field, text = name.decode().lower(), value.decode("latin-1")
        if field == TIMING:
            said = {quantity: _ns(_number(dur), MS) for quantity, dur in _TIMING.findall(text)}
        else:
            said = {FIELDS[field][1]: _ns(_number(text), MS)}
        known = {quantity: ns for quantity, ns in said.items() if ns is not None}
        if known:
            times |= {"by": TIMING if field == TIMING else FIELDS[field][0], **known}
    return times or None


def _said(holder: Mapping[str, Any], saying: Saying) -> dict[str, int]:
    """Return the quantities of which the holder says both ends, if these are in order."""
    sums = dict[str, int]()
    missing = set[str]()
    for key, end in saying.keys.items():
        quantity = end.removeprefix(BEGINS)
        ns = _ns(holder.get(key), saying.unit_ns)
        if ns is None:
            missing.add(quantity)
        else:
            sums[quantity] = sums.get(quantity, 0) + (-ns if end.startswith(BEGINS) else ns)
    return {name: ns for name, ns in sums.items() if name not in missing and ns >= 0}


def _ns(value: Any, unit_ns: float) -> int | None:
    """Return a time in ns; None: it is no number that a time can have."""
    if type(value) not in (int, float) or not 0 <= value < MAX_NS:
        return None
    ns = value * unit_ns
    return round(ns) if ns < MAX_NS else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
