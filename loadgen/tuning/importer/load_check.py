"""Load check: whether a published result can come from the load that a workload of the study sends."""

from loadgen.analysis.audit.published import Published
from loadgen.config.settings import RunSettings
from loadgen.tuning.plan.estimate import tokens

CONVERSATIONS = 1000  # of ShareGPT, for which the usual lengths are known
TOLERANCE = 0.15  # relative, of their mean length: tokenizers differ


def difference(result: Published, load: RunSettings) -> str:
    """Return in what the prompts of a result differ from a workload's; empty if nothing shows that they do.

    Results with failed requests are not compared, since the tokens of the others say little.
    """
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
