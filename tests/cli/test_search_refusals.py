"""What a search refuses before anything is sent."""

import pytest

from loadgen.cli.commands import search
from loadgen.errors import BadInput


def test_batches_of_texts() -> None:
    flags = (
        "--base-url http://127.0.0.1:1 --backend openai-embeddings --random-batch-size 2 "
        "--slo e2el_p50<1s"
    )
    with pytest.raises(BadInput) as refused:
        search.main(flags.split())
    assert refused.value.field == "--random-batch-size"


def test_limits_of_a_class_are_refused():
    flags = "--base-url http://127.0.0.1:1 --slo ttft_p99<1s --class a:slo=ttft_p99<1s"
    with pytest.raises(BadInput) as refused:
        search.main(flags.split())
    assert refused.value.field == "--class"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--rate-profile", "5@5s"),
        ("--concurrency-profile", "5@5s"),
        ("--users", "5"),
        ("--stop-when", "errors>1"),
    ],
)
def test_what_changes_or_ends_a_load_is_refused(flag: str, value: str) -> None:
    with pytest.raises(BadInput) as refused:
        search.main(["--base-url", "http://127.0.0.1:1", "--slo", "ttft_p99<1s", flag, value])
    assert refused.value.field == flag
