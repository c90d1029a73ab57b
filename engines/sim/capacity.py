"""Capacity of a simulated server, and its latencies below that rate, by the equations of its cost
model.

All requests have the same lengths of prompt and answer, and nothing is cached. EQUATIONS.md
derives the equations.
"""

import dataclasses
import math
from dataclasses import dataclass

from loadgen.engines.sim.settings import SimSettings

MAX_ITERATIONS = 2000  # of a fixed point, which converges to TOLERANCE in far fewer
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected means at a rate below capacity.

    Attributes:
        ttft_ms: Time from a request's arrival to its first token.
        tpot_ms: Time between the tokens of an answer.
        running: Running sequences of one engine core.
    """

    ttft_ms: float
    tpot_ms: float
    running: float


@dataclass(frozen=True, slots=True)
class _Steps:
    """Lengths of steps, ns: `rest + spared` without prompts, `rest + k * prompt` with k prompts.

    Attributes:
        rest: Length without what follows.
        prompt: Additional length for each prompt.
        spared: Time that reading the weights takes beyond the computation of a step without
            prompts.
    """

    rest: float
    prompt: float
    spared: float

    @classmethod
    def of(
        cls, settings: SimSettings, running: float, prompt_tokens: int, output_tokens: int
    ) -> "_Steps":
        costs = settings.costs
        decodes = running * (output_tokens - 1) / output_tokens
        context = running * (prompt_tokens + (output_tokens - 1) / 2)
        without = costs.duration_ns(0, decodes, context)
        spared = max(0.0, costs.weights_ns - costs.matmul_ns_per_token * decodes)
        per_token = costs.matmul_ns_per_token + costs.prefill_ns_per_token
        pairs = prompt_tokens * (prompt_tokens + 1) / 2
        return cls(
            without - spared,
            per_token * prompt_tokens + costs.attention_ns_per_pair * pairs,
            spared,
        )


def capacity_per_s(settings: SimSettings, prompt_tokens: int, output_tokens: int) -> float:
    """Return the maximum rate that the server sustains, requests/s: as many sequences run as fit at
    once.

    Args:
        settings: Settings of the server.
        prompt_tokens: Prompt tokens of each request.
        output_tokens: Output tokens of each request.
    """
    # Each request takes part in `steps` steps, with `batched` tokens in each.
    steps = output_tokens - 1 + math.ceil(prompt_tokens / settings.max_num_batched_tokens)
    batched = (prompt_tokens + output_tokens - 1) / steps
    running = min(
        settings.max_num_seqs,
        settings.max_num_batched_tokens / batched,
        settings.num_kv_tokens / (prompt_tokens + (output_tokens - 1) / 2),
    )
    lengths = _Steps.of(settings, running, prompt_tokens, output_tokens)
    started = running / steps
    step_ns = lengths.rest + started * lengths.prompt + math.exp(-started) * lengths.spared
    return settings.data_parallel_size * running / (steps * step_ns / 1e9)


def closed_load_s(
    settings: SimSettings, requests: int, in_flight: int, prompt_tokens: int, output_tokens: int
) -> tuple[float, float]:
    """Return about how long requests take that are as many in flight as may be, s.

    At least, all of them at the rate at which that many run; at most, an answer's time more, in
    which the last ones end.

    Args:
        settings: Settings of the server.
        requests: Their number.
        in_flight: Most of them in flight.
        prompt_tokens: As in `capacity_per_s`.
        output_tokens: As in `capacity_per_s`.
    """
    cores = settings.data_parallel_size
    running = min(settings.max_num_seqs, math.ceil(min(in_flight, requests) / cores))
    limited = dataclasses.replace(settings, max_num_seqs=running)
    rate = capacity_per_s(limited, prompt_tokens, output_tokens)
    shortest = requests / rate
    return shortest, shortest + running * cores / rate


def forecast(
    settings: SimSettings, rate_per_s: float, prompt_tokens: int, output_tokens: int
) -> Forecast:
    """Return the expected latencies for Poisson arrivals.

    Args:
        settings: Settings of the server.
        rate_per_s: Requests/s over all engine cores; well below `capacity_per_s`.
        prompt_tokens: Prompt tokens of each request; at most as many as fit into one step.
        output_tokens: Output tokens of each request.

    Raises:
        ValueError: The prompts do not fit, or the rate is more than can be prefilled.
    """
    if prompt_tokens > settings.max_num_batched_tokens:
        raise ValueError(f"a prompt of {prompt_tokens} tokens does not fit into a step")
    rate = rate_per_s / settings.data_parallel_size / 1e9
    running = step_ns = without = 0.0
    for _ in range(MAX_ITERATIONS):
        lengths = _Steps.of(settings, running, prompt_tokens, output_tokens)
        if rate * lengths.prompt >= 1:
            raise ValueError(f"{rate_per_s} requests/s are more than can be prefilled")
        without = _without_prompts(lengths, rate)
        before = step_ns
        step_ns = (lengths.rest + lengths.spared * without) / (1 - rate * lengths.prompt)
        running = rate * step_ns * output_tokens
        if abs(step_ns - before) <= TOLERANCE * step_ns:
            break
    # The mean square of the step lengths; a step's number of prompts is Poisson, given the step
    # before.
    rest = lengths.rest
    prompt = lengths.prompt
    spared = lengths.spared
    mixed = 2 * rest * (prompt * rate * step_ns + spared * without)
    square = (rest**2 + prompt**2 * rate * step_ns + spared**2 * without + mixed) / (
        1 - (rate * prompt) ** 2
    )
    step_met_ns = square / step_ns  # mean length of the step that an arrival falls into
    wait_ns = (1 - math.exp(-running)) * step_met_ns * (0.5 + rate * prompt)
    ttft_ns = settings.frontend_ms * 1e6 + wait_ns + rest + prompt
    costs = settings.costs
    decode_ns = costs.duration_ns(0, 1, prompt_tokens + output_tokens / 2) - costs.duration_ns(
        0, 0, 0
    )
    return Forecast(ttft_ns / 1e6, (step_ns + decode_ns) / 1e6, running)


def _without_prompts(lengths: _Steps, rate: float) -> float:
    """Return the share of steps without prompts, if each step prefills what arrived in the step
    before.

    The generating function G of prompts in a step has G(z) = e(z) [G(y) + G(0) h(z)], y = exp(rate
    prompt (z - 1)), e(z) = exp(rate rest (z - 1)), h(z) = exp(rate spared (z - 1)) - 1; from z = 0,
    y goes to 1, where G is 1.
    """
    z = 0.0
    product = 1.0
    total = 0.0
    for _ in range(MAX_ITERATIONS):
        product *= math.exp(rate * lengths.rest * (z - 1))
        total += product * math.expm1(rate * lengths.spared * (z - 1))
        if 1 - z <= TOLERANCE:
            break
        z = math.exp(rate * lengths.prompt * (z - 1))
        if lengths.prompt == 0:
            break
    return product / (1 - total)
