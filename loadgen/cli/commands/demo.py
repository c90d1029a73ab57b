"""`loadgen demo`: measure the built-in simulator at 1,000 requests/s, with answers that this
machine can carry.
"""

import math

from loadgen.cli.commands import run
from loadgen.cli.output import say
from loadgen.config.settings import RunSettings
from loadgen.util.argument_parser import OneLineParser

RATE, SECONDS = 1000, 5
PAGE = "loadgen-demo.html"
PROMPT_TOKENS = 128
MIN_TOKENS, MAX_TOKENS = 16, 128  # of an answer
# Of the event loop's time, and of all cores' time, that the run may take: what else runs needs the
# rest.
MAX_BUSY = 0.4
NEXT = f"""
Next:
  open {PAGE} in a browser
  loadgen run --base-url http://HOST:PORT --rate 10 --num-prompts 200  measure your own server
  loadgen search --base-url http://HOST:PORT --slo "ttft_p90<500ms"    find the rate it sustains
  loadgen doctor                                                       see what this machine does"""


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    description = f"Measure the built-in simulator at {RATE:,} requests/s, and write {PAGE}."
    OneLineParser("loadgen demo", description=description).parse_args(argv)
    say("measuring for 1 s what this machine can carry")
    tokens, connections = _carried()
    lengths = f"--random-input-len {PROMPT_TOKENS} --random-output-len {tokens}"
    load = (
        f"--engine sim --rate {RATE} --num-prompts {RATE * SECONDS} {lengths} "
        f"--warm-connections {connections}"
    )
    print(f"$ loadgen run {load} --html {PAGE}", flush=True)
    code = run.main([*load.split(), "--html", PAGE])
    print(NEXT)
    return code


def _carried() -> tuple[int, int]:
    """Return how many tokens an answer may have, and how many connections such answers need, as far
    as this process may have them, from a run of a second with the shortest answers.
    """
    from loadgen.library.run import run_sync
    from loadgen.runner.connection_budget import max_connections

    settings = RunSettings(
        engine="sim",
        request_rate=RATE,
        num_prompts=RATE,
        random_input_len=PROMPT_TOKENS,
        random_output_len=MIN_TOKENS,
    )
    result = run_sync(settings)
    client = result.client
    tokens = tokens_for(client.busy_share or 0.0, 1 - (client.idle_share or 0.0))
    latency_ms = (result.ttft.mean_ms or 0.0) + tokens * (result.tpot.mean_ms or 0.0)
    return tokens, min(connections_for(latency_ms), max_connections(settings))


def tokens_for(loop_busy: float, cores_busy: float) -> int:
    """Return how many tokens an answer may have.

    Args:
        loop_busy: The busy share of the event loop with answers of MIN_TOKENS, 0 to 1.
        cores_busy: The busy share of all cores in the same run, 0 to 1.
    """
    # A request costs as much whatever its length: a lower bound.
    growth = MAX_BUSY / max(loop_busy, cores_busy, 0.01)
    return max(MIN_TOKENS, min(MAX_TOKENS, round(MIN_TOKENS * growth)))


def connections_for(latency_ms: float) -> int:
    """Return how many connections requests of this latency need, but for one moment in a thousand
    of a Poisson process.
    """
    in_flight = RATE * latency_ms / 1000
    return math.ceil(in_flight + 3 * math.sqrt(in_flight))
