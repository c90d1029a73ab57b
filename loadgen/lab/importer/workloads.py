"""Finds the workload of a study that a published result belongs to, and checks that it can come from its load."""

import math
from collections.abc import Mapping

from loadgen.config.settings import RunSettings
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.study import stems
from loadgen.lab.audit.workload import length_mismatch
from loadgen.lab.importer.entries import Unplaced
from loadgen.lab.study.plan.estimate import tokens

MIN_REQUESTS = 0.9  # share of a workload's requests that a result must account for
CONVERSATIONS = 1000  # of ShareGPT, for which the usual lengths are known
TOLERANCE = 0.15  # relative, of their mean length: tokenizers differ
RATE_KEPT = 0.9  # share of the request rate from which on no cap has held requests back
EARLY = 0.5  # share of the time that a request rate takes; Poisson arrivals of few requests may need less than all


def find_workload(loads: Mapping[str, RunSettings], result: Published, sent: int | None, near: str) -> str:
    """Return the name of a result's workload.

    Args:
        sent: Number of requests that were sent; None: as many as succeeded.
        near: Text above it, which decides if several workloads fit.

    Raises:
        Unplaced: No workload of the study fits, or several do.
    """
    why = {name: _mismatch(result, sent, load) for name, load in loads.items()}
    fitting = [name for name, reason in why.items() if not reason]
    exact = [name for name in fitting if loads[name].dataset_name == "random"] or fitting
    called = [name for name in exact if stems(name) and stems(name) <= stems(near)]
    found = exact if len(exact) == 1 else called
    if len(found) == 1:
        return found[0]
    if exact:
        raise Unplaced(f"{_shape(result)} can be {' or '.join(found or exact)}")
    reasons = ", ".join(f"{name} {reason}" for name, reason in why.items())
    raise Unplaced(f"no workload of the study is {_shape(result)}: {reasons}")


def _mismatch(result: Published, sent: int | None, load: RunSettings) -> str:
    ok, wanted = _value(result, "ok"), load.num_prompts
    sent = int(ok) if sent is None else sent
    if wanted and not MIN_REQUESTS * wanted <= sent <= wanted:
        return f"has {wanted} requests"
    if not ok:
        return "has requests that succeed"
    return _rate_mismatch(result, load) or _cap_mismatch(result, sent, load) or _length_mismatch(result, load)


def _rate_mismatch(result: Published, load: RunSettings) -> str:
    rate, printed, duration = load.request_rate, result.get("rate"), result.get("duration_s")
    too_short = duration is not None and duration.value < EARLY * (_value(result, "ok") - 1) / rate
    if too_short or (printed is not None and not math.isclose(printed.value, rate, rel_tol=0.01)):
        return "has no request rate" if math.isinf(rate) else f"has {rate:g} requests/s"
    return ""


def _cap_mismatch(result: Published, sent: int, load: RunSettings) -> str:
    """Compare the caps on requests in flight as far as they bind; some files do not have it."""
    if result.tpot_with_first or (result.data and "max_concurrency" not in result.data):
        return ""
    rate, duration = load.request_rate, result.get("duration_s")
    if math.isfinite(rate) and duration is not None and _value(result, "ok") >= RATE_KEPT * rate * duration.value:
        return ""  # no cap held a request back; some tools print the highest number seen as the cap
    cap = result.get("cap")
    if _binding(cap.value if cap else None, sent) == _binding(load.max_concurrency, sent):
        return ""
    return f"has at most {load.max_concurrency} in flight" if load.max_concurrency else "has no cap on those in flight"


def _binding(cap: float | None, requests: int) -> float:
    return cap if cap is not None and cap < requests else math.inf


def _length_mismatch(result: Published, load: RunSettings) -> str:
    if load.dataset_name == "sharegpt":
        same = load.sharegpt_output_len is None and result.reply is not None
        return "has replies of different lengths" if same else ""
    if load.dataset_name != "random":
        return ""
    asked = {"prompts": load.random_input_len, "replies": load.random_output_len}
    prompts, replies = (length if isinstance(length, int) else None for length in asked.values())
    wrong = length_mismatch(result, prompts, replies)
    return f"has {wrong} of {asked[wrong]} tokens" if wrong else ""


def _shape(result: Published) -> str:
    ok, cap = _value(result, "ok"), result.get("cap")
    in_flight = f"at most {cap.value:g} in flight, " if cap else ""
    tokens = f"{_value(result, 'input_tokens'):g} tokens in, {_value(result, 'output_tokens'):g} out"
    return f"{ok:g} requests, {in_flight}{tokens}"


def _value(result: Published, name: str) -> float:
    number = result.get(name)
    return number.value if number else 0.0


def load_difference(result: Published, load: RunSettings) -> str:
    """Return in what the prompts of a result differ from a workload's; empty if nothing shows that they do."""
    # Results with failed requests are not compared, since the tokens of the others say little.
    ok, prompts = result.get("ok"), result.get("input_tokens")
    lengths = tokens(load)
    if ok is None or not ok.value or ok.value != load.num_prompts or lengths is None:
        return ""
    if prompts is None:
        return ""
    of_data = {"random": _random_prompts, "sharegpt": _conversations}[load.dataset_name]
    return of_data(prompts.value / ok.value, lengths[0], load)


def _random_prompts(mean: float, length: int, load: RunSettings) -> str:
    """Compare the mean length of random prompts with the lengths that the workload's rule makes."""
    if load.dataset_rule is None and mean % 1:  # a template adds the same number of tokens to each prompt
        return f"its prompts have {mean:.2f} tokens on average, and each of this load has exactly {length}"
    if load.dataset_rule == "vllm-0.9" and mean != length:
        return f"its prompts have {mean:.2f} tokens on average, and vllm-0.9 counts {length} for each"
    if load.dataset_rule == "vllm-0.11" and mean > length:
        return f"its prompts have {mean:.2f} tokens on average, and those of vllm-0.11 at most {length}"
    return ""


def _conversations(mean: float, usual: int, load: RunSettings) -> str:
    """Compare the mean length of a thousand prompts with those of the published file by the workload's rule."""
    if load.num_prompts != CONVERSATIONS or abs(mean / usual - 1) <= TOLERANCE:
        return ""
    rule = load.dataset_rule or "vllm-0.11"
    return f"its prompts have {mean:.0f} tokens on average, and those that {rule} chooses about {usual}"
