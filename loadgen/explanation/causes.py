"""Causes: what can make requests slow, as data: how each shows, what is said of it, and what to do.

The catalogue has no rule of its own; `diagnosis` says how much of the time is each cause's.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Side = Literal["client", "way", "server"]


class Cause(Struct, frozen=True):
    """One cause.

    Attributes:
        name: Its name in the JSON.
        side: Where it is.
        shows: How it shows in the records, for the documentation.
        sentence: What is said of it; {ms} is its time.
        advice: What to do; {max_seqs} and the like are knobs, as the engine spells them.
        rests_on: What it needs: counts alone, an estimate of parts, or the cost of the engine's
            steps.
    """

    name: str
    side: Side
    shows: str
    sentence: str
    advice: str
    rests_on: Literal["counts", "parts", "steps"] = "parts"


# How knobs are called where the engine is not known.
KNOBS = {
    "max_seqs": "the limit of running requests",
    "max_batched_tokens": "the tokens of a step",
    "memory_fraction": "the memory of the KV cache",
}
CAUSES = {
    cause.name: cause
    for cause in (
        Cause(
            "client-cap",
            "client",
            "`ready` after `due`",
            "requests waited {ms} for loadgen's own --max-concurrency",
            "raise --max-concurrency, or read latencies from sent",
            rests_on="counts",
        ),
        Cause(
            "client-late",
            "client",
            "`sent` after `ready`; long gaps whose token may have come earlier",
            "loadgen sent or read {ms} late: this machine was too slow",
            "free a core, give more --workers, or use another machine",
            rests_on="counts",
        ),
        Cause(
            "connect",
            "way",
            "`connect` above 0",
            "opening connections took {ms}",
            "keep connections open at the server or gateway, or raise --warm-connections",
            rests_on="counts",
        ),
        Cause(
            "front",
            "way",
            "what the fastest requests take beyond a step and the prompt",
            "{ms} went outside the engine: network, gateway, HTTP, chat template or tokenizer",
            "compare with a run beside the server, and look at the gateway's own timings",
        ),
        Cause(
            "front-server",
            "server",
            "the same, and the server's own TTFT contains it",
            "{ms} went in the server before its queue: HTTP, chat template or tokenizer",
            "start more API servers, or send prompts as token ids",
        ),
        Cause(
            "front-path",
            "way",
            "the same, and the server's own TTFT does not contain it",
            "{ms} went between loadgen and the server: network, gateway or proxy",
            "run beside the server, and look at the gateway's own timings",
        ),
        Cause(
            "network",
            "way",
            "the same, and one round trip (`tcp`) is most of it",
            "{ms} went outside the engine, most of it for one round trip",
            "run nearer to the server; it is no fault of its own",
        ),
        Cause(
            "queue-slots",
            "server",
            "TTFT above the fastest, with as many streams as ever",
            "requests waited {ms} for a slot",
            "raise {max_seqs} if the KV cache has room, or add a replica",
        ),
        Cause(
            "kv",
            "server",
            "preemptions; streams that stand still alone and do not catch up",
            "the KV cache was full: {ms} of waiting and computing again",
            "raise {memory_fraction}, use a smaller KV type, or add a replica",
        ),
        Cause(
            "queue-prefill",
            "server",
            "TTFT above the fastest, with fewer streams than at other times",
            "requests waited {ms} for steps with room for their prompts",
            "raise {max_batched_tokens}, use the prefix cache, or add a replica",
        ),
        Cause(
            "prefill-own",
            "server",
            "TTFT rises with the length of the prompt",
            "computing the prompt took {ms} beyond one step",
            "use the prefix cache, shorter prompts, or more GPUs for a replica",
        ),
        Cause(
            "prefill-others",
            "server",
            "gaps of all streams in steps in which a prompt ends",
            "decoding stood still for {ms} while prompts of others were computed",
            "a smaller {max_batched_tokens} shortens the gaps and lengthens TTFT",
            rests_on="steps",
        ),
        Cause(
            "decode-batch",
            "server",
            "steps that are longer the more streams there are",
            "steps were longer by {ms} because of the other streams",
            "add a replica, or more GPUs for one",
            rests_on="steps",
        ),
        Cause(
            "engine-pause",
            "server",
            "all streams stand still, without a prompt, and do not catch up",
            "the engine stood still, all streams at once, for {ms}",
            "look at the server's host: CPU limits, garbage collection, swap, other processes",
        ),
        Cause(
            "path-stall",
            "way",
            "all streams stand still and catch up",
            "all streams stood still and then caught up: {ms}",
            "look at the way to the server, a proxy or its host; it is not the engine",
            rests_on="counts",
        ),
        Cause(
            "stream-stall",
            "way",
            "a stream stands still alone and catches up",
            "single streams stood still and then caught up: {ms}",
            "look at the way to the server: packet loss, or a worker of a proxy",
            rests_on="counts",
        ),
        Cause(
            "bundling",
            "way",
            "several tokens come at a time, all the time",
            "tokens waited {ms} to come together",
            "look at the server's stream interval and at the proxy's buffering",
            rests_on="counts",
        ),
    )
}


def advice(cause: Cause, knobs: Mapping[str, str]) -> str:
    """Write what to do.

    Args:
        cause: The cause.
        knobs: The engine's own names of knobs.
    """
    return cause.advice.format(**KNOBS | {name: knobs[name] for name in KNOBS if name in knobs})
