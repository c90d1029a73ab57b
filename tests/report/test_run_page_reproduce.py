"""The command on the page of a result repeats the run and holds no credential."""

import shlex

import pytest

from loadgen.cli.flags import parse
from loadgen.config.settings import RunSettings, public
from loadgen.report.run_page.run import command
from tests.helpers.saved_json import html
from tests.helpers.saved_results import ran


def again(settings: RunSettings) -> RunSettings:
    """The settings that the command of the page means."""
    default = public(RunSettings())
    asked = {name: value for name, value in public(settings).items() if value != default[name]}
    words = shlex.split(command(asked))
    assert words[:2] == ["loadgen", "run"]
    return RunSettings(**parse(words[2:]))


@pytest.mark.parametrize(
    "settings",
    [
        RunSettings(),
        RunSettings(request_rate=12.5, num_prompts=100, random_input_len="normal:100:10", seed=3),
        RunSettings(
            base_url=("http://a:1", "http://b:2"), balance="least-outstanding", model="it's a model"
        ),
        RunSettings(
            engine="sim",
            engine_arg=("max_seqs=8", "--x 'y z'"),
            ignore_eos=False,
            metadata=("a=b c",),
        ),
        RunSettings(
            extra_body={"a": [1, "$HOME"]},
            goodput=("ttft:200", "tpot:50"),
            metric_percentiles="50,99.9",
        ),
        RunSettings(max_concurrency=4, continuous_usage=True, latency_from="sent", label="-x"),
    ],
)
def test_the_command_asks_the_same_again(settings: RunSettings) -> None:
    assert again(settings) == settings


def test_command_writes_over_no_file_of_the_run() -> None:
    files = RunSettings(
        html="r.html",
        records="r.jsonl",
        hlog="r.hlog",
        capture="c",
        save_result=True,
        result_filename="r",
        json=True,
    )
    assert again(files) == RunSettings()


def test_page_shows_placeholders_instead_of_credentials() -> None:
    secret = RunSettings(
        base_url="http://user:hunter2@host:8000",
        api_key="sk-hunter2",
        header=("X-Key=hunter2",),
        engine_arg=("--api-key hunter2",),
        engine="sim",
    )
    text = html([ran(secret)])
    assert "hunter2" not in text
    assert "# OPENAI_API_KEY must hold the API key." in text
    assert "--header X-Key=@FILE" in text
    assert "(given)" in text
    assert "--api-key &#39;" not in text
