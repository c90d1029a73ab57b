"""Records of a run whose server counts tokens, and of which some requests fail."""

from pathlib import Path

from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from tests.helpers.compared_runs import kept
from tests.helpers.run_facts import due_at, failed, steady, unsent

COUNT, FAILED, UNSENT = 30, 2, 1
GAP_MS = 10


def counted_run(path: Path) -> Path:
    """Write them: the first COUNT are ok, with a TTFT of 20 ms and more."""
    requests = COUNT + FAILED + UNSENT
    records = [
        steady(
            index,
            due=100 * index,
            ttft=20 + index,
            gap=GAP_MS,
            n=2 + index % 4,
            counts={"prompt_tokens": 10 + index, "completion_tokens": 2 + index % 4},
        )
        for index in range(COUNT)
    ]
    records += [
        failed(COUNT, Outcome.STATUS, due=100 * COUNT, detail="busy"),
        failed(COUNT + 1, Outcome.STATUS, due=100 * (COUNT + 1), detail="busy"),
        unsent(COUNT + 2, due=100 * (COUNT + 2)),
    ]
    settings = RunSettings(request_rate=10.0, num_prompts=requests).checked()
    kept(path, records, due_at(*(100 * index for index in range(requests))), settings)
    return path
