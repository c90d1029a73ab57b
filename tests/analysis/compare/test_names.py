"""Names of sides, from the paths of their files."""

import pytest

from loadgen.analysis.compare.side import names

LONG = "openai-chat-20.0qps-Qwen3-8B-20260102-0304"


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (("base.jsonl", "new.jsonl"), ["base", "new"]),
        (("runs/base", "runs/new/"), ["base", "new"]),
        (("base/1.json", "new/1.json"), ["base", "new"]),
        (("base/records/1.json", "new/records/1.json"), ["base", "new"]),
        (("a/1.json", "b/1.json", "b/2.json"), ["a/1", "b/1", "b/2"]),
        ((f"{LONG}05.json", f"{LONG}06.json"), ["030405", "030406"]),
        ((f"base-{LONG}05.json", f"new-{LONG}06.json"), ["base", "new"]),
        (("x" * 21, "y" * 21), ["A", "B"]),
        (("a.json", "a.jsonl"), ["A", "B"]),
        (("result-v1.2", "result-v1.3"), ["result-v1.2", "result-v1.3"]),
    ],
)
def test_sides_are_named_after_what_their_paths_differ_in(
    paths: tuple[str, ...], found: list[str]
) -> None:
    assert names(paths) == found
