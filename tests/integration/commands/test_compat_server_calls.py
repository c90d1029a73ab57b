"""Flags of other tools that make the server profile or empty its cache."""

from pathlib import Path

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from tests.helpers.compat_lines import read, refusal
from tests.helpers.source import ROOT

# SGLang's flags that people's scripts have, and none of the releases that were read.
IN_SCRIPTS = {"--trust-remote-code"}
TOKENIZER = ROOT / "engines" / "sim" / "tokenizer.json"
PAGES = ROOT / "tests/data/pages"


SGLANG = "--compat sglang --model m"


def test_the_profiler_of_vllm_is_a_setting() -> None:
    assert read("--model m --profile").profile
    busy = read("--model m --profile --profile-batch-threshold 32 --profile-duration 2")
    assert (busy.profile_batch_threshold, busy.profile_duration) == (32, 2.0)


def test_sglangs_flags_of_the_profiler_are_fields_of_its_request(tmp_path: Path) -> None:
    said = (
        "--profile-activities CPU GPU --profile-start-step 3 --profile-prefix a "
        f"--profile-output-dir {tmp_path}/"
    )
    settings = read(f"{SGLANG} --profile {said} --profile-stages prefill decode")
    assert settings.profile_body == {
        "activities": ["CPU", "GPU"],
        "start_step": 3,
        "profile_prefix": "a",
        "output_dir": str(tmp_path),
        "profile_stages": ["prefill", "decode"],
    }
    workers = read(f"{SGLANG} --profile --profile-prefill-url http://a:1 http://b:1")
    assert workers.profile_url == ("http://a:1", "http://b:1")


@pytest.mark.parametrize(
    ("said", "steps"), [("", 5), (" --profile-num-steps 9", 9), (" --profile-steps 9", 9)]
)
def test_sglang_profiles_five_steps_by_stage_unless_told_otherwise(said: str, steps: int) -> None:
    body = read(f"{SGLANG} --profile{said} --profile-by-stage{said}").profile_body
    assert body == {"num_steps": steps, "profile_by_stage": True}


def test_what_to_profile_without_a_profile_is_refused() -> None:
    assert refusal(f"{SGLANG} --profile-num-steps 5").startswith(
        "--profile-body: given without --profile"
    )
    assert refusal("--model m --profile --profile-duration 2").startswith(
        "--profile-duration: given without"
    )
    off = "--profile --profile-batch-threshold 2 --server-metrics off"
    assert refusal(f"--model m {off}").startswith(
        "--profile-batch-threshold: needs the server's metrics"
    )


@pytest.mark.parametrize(
    "said",
    [
        f"{SGLANG} --flush-cache",
        f"{SGLANG} --flush-cache-timeout 5 --flush-cache --backend sglang-oai",
        f"{SGLANG} --flush-cache --backend vllm-chat",
        "--model m --reset-prefix-cache",
    ],
)
def test_flags_that_empty_the_cache_ask_for_a_cold_one(said: str) -> None:
    assert read(said).cache == "cold"


def test_no_cache_is_emptied_by_its_timeout_alone() -> None:
    assert read(f"{SGLANG} --flush-cache-timeout 5").cache == "as-is"


@pytest.mark.parametrize("path", ["reset", "/a b", "http://a/reset"])
def test_a_call_that_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(BadInput, match="is not a path"):
        RunSettings(call_before=(path,)).checked()
