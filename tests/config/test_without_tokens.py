"""Settings that ask for tokens are refused where answers have none."""

from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput


def settings(**options: Any) -> RunSettings:
    return RunSettings(**{"backend": "openai-embeddings"} | options)


@pytest.mark.parametrize(
    ("flag", "options"),
    [
        ("--slo", {"slo": "ttft_p99<1s"}),
        ("--slo", {"slo": "e2el_p99<1s,icl_p50<10ms"}),
        ("--goodput", {"goodput": ("tpot:50",)}),
        ("--percentile-metrics", {"percentile_metrics": "e2el,ttft"}),
        ("--temperature", {"temperature": 0.0}),
        ("--continuous-usage", {"continuous_usage": True}),
        ("--first-token-timeout", {"first_token_timeout": 3.0}),
        ("--turns", {"turns": "2", "dataset_name": "sharegpt"}),
        ("--dataset-name", {"dataset_name": "multi_turn"}),
        ("--extra-body", {"extra_body": {"encoding_format": "bytes"}}),
    ],
)
def test_refused(flag: str, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        settings(**options).checked()
    assert refused.value.field == flag


@pytest.mark.parametrize(
    ("flag", "options"),
    [
        ("--slo", {"slo": "ttft_p99<1s"}),
        ("--percentile-metrics", {"percentile_metrics": "e2el,itl"}),
        ("--continuous-usage", {"continuous_usage": True}),
        ("--first-token-timeout", {"first_token_timeout": 3.0}),
        ("--extra-body", {"extra_body": {"stream": True}}),
    ],
)
def test_times_of_tokens_are_refused_where_a_text_comes_in_one_piece(
    flag: str, options: dict[str, Any]
) -> None:
    with pytest.raises(BadInput) as refused:
        settings(backend="openai", disable_stream=True, **options).checked()
    assert refused.value.field == flag


def test_a_text_in_one_piece_has_output_and_sampling_parameters() -> None:
    asked = (
        settings(backend="openai", disable_stream=True, temperature=0.5, slo="e2el_p99<1s")
        .checked()
        .implied()
    )
    assert (asked.percentile_metrics, asked.ignore_eos) == ("e2el", True)
    with pytest.raises(
        BadInput, match="--extra-body: stream: false; leave it out, or use --disable-stream"
    ):
        settings(backend="openai", extra_body={"stream": False}).checked()


def test_e2el_can_be_limited() -> None:
    settings(
        slo="e2el_p99<1s,error_rate<1%", goodput=("e2el:100",), percentile_metrics="e2el"
    ).checked()


def test_implied_settings_have_no_output() -> None:
    implied = settings().implied()
    assert (implied.percentile_metrics, implied.ignore_eos) == ("e2el", None)
