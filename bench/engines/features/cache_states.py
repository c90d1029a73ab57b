"""Cache states: the prefix cache of a real server is as --cache asks for, by the server's own
counters.
"""

from collections.abc import Iterator

from bench.engines.features.measured_run import MeasuredRun, Row, TriedServer
from bench.engines.features.sessions import counter_problems, hit_rate_text
from loadgen.checks.prefix_cache import NAME

PREFIXES, PROMPTS = 3, 12


def rows(server: TriedServer) -> Iterator[Row]:
    """Run the same prompts again and again, from a cache in each state."""
    flags = [
        "--backend",
        "openai",
        "--dataset-name",
        "prefix_repetition",
        "--prefix-repetition-output-len",
        "4",
    ]
    flags += [
        "--prefix-repetition-prefix-len",
        str(2 * server.words),
        "--prefix-repetition-suffix-len",
        "20",
    ]
    flags += ["--prefix-repetition-num-prefixes", str(PREFIXES), "--num-prompts", str(PROMPTS)]
    flags += ["--max-concurrency", "1", "--ignore-eos"]
    # The second and the third run show that the server knows the prompts, and that it does not
    # after `cold`.
    for state in ("cold", "as-is", "cold", "salted", "salted", "warm"):
        run = server.measure(*flags, "--cache", state)
        yield Row(
            f"--cache {state}",
            str(PROMPTS),
            hit_rate_text(run),
            tuple(state_problems(server, run, state)),
        )


def state_problems(server: TriedServer, run: MeasuredRun, state: str) -> Iterator[str]:
    """Where a run found anything else in the cache than its state allows."""
    own, cache = run.own, run.own["prefix_cache"]
    checks = {check["name"]: check["ok"] for check in own["checks"]}
    if own["outcomes"] != {"ok": PROMPTS}:
        yield f"outcomes are {own['outcomes']}"
    if state == "as-is":
        if cache["hit_rate"] <= cache["best_hit_rate"]:
            yield "the server did not know the prompts of the run before"
        if checks["prompts repeated"] is not False:
            yield "the note on repeated prompts is missing"
    else:
        if checks[NAME] is not True:
            yield f"the check says {checks[NAME]}"
        if cache["hit_rate"] != cache["best_hit_rate"]:
            yield "another share than the best came from the cache"
    if state == "warm":
        if (cache["warmed"], cache["warmed_by"]) != (PREFIXES, "prefix"):
            yield f"{cache['warmed']} requests warmed the cache up, by {cache['warmed_by']}"
    else:  # the requests that warm it up are counted, too
        yield from counter_problems(server, run)
