"""A workload is a preset by name or a GPUStack profile in a file; both are settings only."""

import math

import pytest

from loadgen.config import presets
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput

PROFILES = {
    "gpustack-sharegpt": "dataset_name: ShareGPT\nrequest_rate: 1000\ntotal_requests: 1000\n",
    "gpustack-throughput": """
        dataset_name: Random
        dataset_input_tokens: 1024
        dataset_output_tokens: 128
        dataset_seed: 42
        request_rate: 1000
        total_requests: 1000
    """,
    "gpustack-long-context": """
        dataset_name: Random
        dataset_input_tokens: 32000
        dataset_output_tokens: 100
        dataset_seed: 42
        request_rate: 1
        total_requests: 100
    """,
    "gpustack-generation-heavy": """
        dataset_name: Random
        dataset_input_tokens: 1000
        dataset_output_tokens: 2000
        dataset_seed: 42
        request_rate: 1
        total_requests: 200
    """,
    "gpustack-latency": """
        dataset_name: Random
        dataset_input_tokens: 32
        dataset_output_tokens: 128
        dataset_seed: 42
        request_rate: 1
        total_requests: 100
    """,
}
SHOWN = {
    "ShareGPT": "gpustack-sharegpt",
    "Throughput": "gpustack-throughput",
    "Long Context": "gpustack-long-context",
    "Generation Heavy": "gpustack-generation-heavy",
    "Latency": "gpustack-latency",
}
KEYS = (
    "dataset_name, dataset_input_tokens, dataset_output_tokens, dataset_seed, request_rate, "
    "total_requests"
)


@pytest.fixture
def profile(tmp_path):
    def to_file(content):
        path = tmp_path / "profile.yaml"
        path.write_text(content, encoding="utf-8")
        return str(path)

    return to_file


class TestPresets:
    @pytest.mark.parametrize("name", presets.PRESETS)
    def test_every_preset_makes_settings_that_hold(self, name):
        RunSettings(**presets.resolve(name)).checked()

    @pytest.mark.parametrize(
        ("name", "input_len", "output_len", "count"),
        [
            ("short", 128, 4, 1000),
            ("medium", 2000, 100, 500),
            ("long", 4000, 200, 500),
            ("very-long", 32000, 100, 100),
        ],
    )
    def test_random_ones_send_all_at_once_with_seed_42(self, name, input_len, output_len, count):
        assert presets.resolve(name) == {
            "dataset_name": "random",
            "random_input_len": input_len,
            "random_output_len": output_len,
            "num_prompts": count,
            "request_rate": math.inf,
            "seed": 42,
        }

    def test_sharegpt_keeps_the_seed_of_the_run(self):
        all_at_once = {"dataset_name": "sharegpt", "num_prompts": 1000, "request_rate": math.inf}
        assert presets.resolve("sharegpt") == all_at_once
        assert presets.resolve("sharegpt-bs4") == all_at_once | {"max_concurrency": 4}

    @pytest.mark.parametrize("name", PROFILES)
    def test_gpustacks_are_evenly_spaced_capped_and_of_full_length(self, name):
        preset = RunSettings(**presets.resolve(name))
        assert (preset.burstiness, preset.max_concurrency, preset.ignore_eos) == (
            math.inf,
            512,
            True,
        )

    @pytest.mark.parametrize("name", PROFILES)
    def test_gpustacks_have_the_prompts_of_its_tool(self, name):
        rule = "benchmark-runner" if name == "gpustack-sharegpt" else "guidellm-0.5"
        assert presets.resolve(name)["dataset_rule"] == rule

    @pytest.mark.parametrize(("shown", "name"), SHOWN.items())
    def test_gpustacks_are_known_by_the_names_it_shows(self, shown, name):
        assert presets.resolve(shown) == presets.resolve(name)

    def test_resolved_preset_is_a_copy(self):
        presets.resolve("short")["num_prompts"] = 1
        assert presets.resolve("short")["num_prompts"] == 1000


class TestProfiles:
    @pytest.mark.parametrize("name", PROFILES)
    def test_gpustacks_own_profiles_are_the_presets(self, name, profile):
        assert presets.resolve(profile(PROFILES[name])) == presets.resolve(name)

    def test_a_key_that_is_left_out_leaves_its_setting_alone(self, profile):
        found = presets.resolve(profile("total_requests: 5\ndataset_seed: null"))
        assert found == {"num_prompts": 5, **presets.GPUSTACK}


class TestBadInput:
    def refusal(self, name):
        with pytest.raises(BadInput) as refused:
            presets.resolve(name)
        return str(refused.value)

    def test_a_name_that_is_neither(self):
        assert self.refusal("shrot").startswith(
            "--workload: unknown preset or file 'shrot'; choose one of: sharegpt, sharegpt-bs4, "
            "short, medium,"
        )

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (
                "dataset_sed: 1",
                ": dataset_sed: unknown key of a profile; did you mean dataset_seed?",
            ),
            ("colour: red", f": colour: unknown key of a profile; write a mapping of {KEYS}"),
            ("", f": is not a mapping; write a mapping of {KEYS}"),
            ("- request_rate: 1", f": is not a mapping; write a mapping of {KEYS}"),
            ("request_rate: 0", ": request_rate: invalid value 0; give a number above 0"),
            ("request_rate: .nan", ": request_rate: invalid value nan; give a number above 0"),
            ("total_requests: 0", ": total_requests: invalid value 0; give a whole number from 1"),
            (
                "total_requests: many",
                ": total_requests: invalid value 'many'; give a whole number from 1",
            ),
            (
                "dataset_name: Sonnet",
                ": dataset_name: invalid value 'Sonnet'; give Random or ShareGPT",
            ),
        ],
    )
    def test_a_profile_is_refused_in_one_line_naming_file_and_key(self, profile, content, message):
        path = profile(content)
        assert self.refusal(path) == path + message

    def test_invalid_yaml_is_refused_with_its_line(self, profile):
        message = self.refusal(profile("request_rate: [1"))
        assert "is not YAML" in message
        assert "line 1" in message
        assert "\n" not in message

    def test_binary_file_is_refused(self, tmp_path):
        path = tmp_path / "profile.yaml"
        path.write_bytes(b"\xff\xfe\x00")
        assert self.refusal(str(path)).startswith(f"{path}: cannot be read (")


@pytest.mark.parametrize(
    ("own", "left"),
    [
        ({"users": 5}, {"num_prompts": 100}),
        ({"rate_profile": "4@5s"}, {"burstiness": math.inf, "max_concurrency": 512}),
        ({"concurrency_profile": "4@5s"}, {}),
        ({"max_concurrency": 3}, {"request_rate": 1.0, "burstiness": math.inf, "num_prompts": 100}),
    ],
)
def test_a_load_of_the_users_own_overrides_what_it_excludes(own, left):
    found = presets.merge("gpustack-latency", own)
    load = ("request_rate", "burstiness", "num_prompts", "max_concurrency")
    assert {name: found[name] for name in load if name in found} == left | {
        name: value for name, value in own.items() if name in load
    }
    RunSettings(base_url="http://127.0.0.1:1", **found).checked()
