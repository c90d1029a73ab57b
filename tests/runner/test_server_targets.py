"""Several targets: how they are named, what is refused, and what the probe finds."""

import base64
import logging

import pytest
from msgspec import structs

from loadgen.cli import flags, run_settings
from loadgen.config.settings import RunSettings, public
from loadgen.errors import BadInput, Unreachable
from loadgen.metrics.records.header import RunHeader
from loadgen.runner import server
from loadgen.runner.server import Server, probe
from loadgen.workload.target import request_targets

A, B = "http://a:8000", "http://b:8000"
BOTH = RunSettings(base_url=(A, B))


@pytest.fixture(autouse=True)
def no_key_around(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


# -- naming


@pytest.mark.parametrize("given", [A, (A,), [A]])
def test_single_target_is_the_same_in_every_notation(given):
    settings = RunSettings(base_url=given).checked()
    assert settings == RunSettings(base_url=A)
    assert (settings.urls, settings.apart(), public(settings)["base_url"]) == ((A,), (settings,), A)


@pytest.mark.parametrize("given", [(A, B), [A, B]])
def test_several_are_kept_in_their_order(given):
    settings = RunSettings(base_url=given).checked()
    assert settings.urls == (A, B)
    assert public(settings)["base_url"] == [A, B]


def test_without_a_url_there_is_one_target_all_the_same():
    settings = RunSettings(host="a", port=8000)
    assert (settings.urls, settings.apart()) == ((), (settings,))


def test_a_flag_is_given_again_for_each_and_a_file_lists_them(tmp_path):
    (tmp_path / "run.yaml").write_text(f"base-url: [{A}, {B}]\n")
    both = flags.parse(["--base-url", A, "--base-url", B, "--balance", "round-robin"])
    assert run_settings.settings(both) == BOTH.replace(balance="round-robin")
    assert run_settings.settings({"config": str(tmp_path / "run.yaml")}) == BOTH
    assert run_settings.settings(flags.parse(["--base-url", A])).base_url == A


def test_a_second_url_is_refused_unless_a_flag_says_how_they_share_the_load():
    remedy = "give one, or add --balance round-robin: they then share the load"
    with pytest.raises(BadInput, match=f"^--base-url: given 2 times; {remedy}$"):
        run_settings.settings(flags.parse(["--base-url", A, "--base-url", B]))


def test_targets_are_read_back_from_a_records_header():
    heading = RunHeader(BOTH, "m", "", False, {})
    assert RunHeader.from_dict(heading.to_dict()) == heading


def test_users_in_target_urls_are_hidden():
    settings = RunSettings(base_url=(A, "http://me:hunter2@b:1"))
    assert "hunter2" not in repr(settings)
    assert public(settings)["base_url"] == [A, "http://(given)@b:1"]


def test_each_is_asked_for_the_same_with_its_own_user():
    first, second = request_targets(
        BOTH.replace(base_url=(A, "http://me:pass@b:1"), backend="openai-chat"), "m"
    )
    assert (first.url, second.url) == (f"{A}/v1/chat/completions", "http://b:1/v1/chat/completions")
    assert (first.model, first.chat, first.fields) == (second.model, second.chat, second.fields)
    assert first.headers == {}
    assert second.headers == {"Authorization": "Basic " + base64.b64encode(b"me:pass").decode()}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"base_url": ()}, "--base-url is empty"),
        ({"balance": "round-robin"}, "--balance given for a single target"),
        ({"base_url": A, "balance": "least-outstanding"}, "--balance given for a single target"),
        (
            {"base_url": (A, B), "balance": "random"},
            "--balance unknown value 'random'; choose from round-robin",
        ),
    ],
)
def test_invalid_settings_for_several_targets_are_refused(settings, problem):
    with pytest.raises(BadInput) as refused:
        RunSettings(**settings).checked()
    assert str(refused.value).replace(":", "", 1).startswith(problem)


# -- probing


@pytest.fixture
def probed(monkeypatch):
    """Says what each server would answer: its models and version, or an error; returns what was
    probed.
    """
    answers, seen = {}, []

    async def probe(settings, on_progress):
        (url,) = settings.urls
        seen.append(url)
        if isinstance(answers[url], Exception):
            raise answers[url]
        models, version = answers[url]
        about = {"base_url": url, "version": version}
        resolved = settings.replace(backend="openai-chat", model=models[0])
        return Server(resolved, models[0], about, models=tuple(models))

    monkeypatch.setattr(server, "_probe_one", probe)
    return answers, seen


async def test_several_are_probed_each_alone_and_measured_as_one(probed):
    answers, seen = probed
    answers |= {A: (["m"], "1.0"), B: (["m"], "1.0")}
    found = await probe(BOTH)
    assert seen == [A, B]
    assert (found.settings.urls, found.settings.balance, found.settings.backend) == (
        (A, B),
        "round-robin",
        "openai-chat",
    )
    assert (found.model, found.about["version"], "differ" in found.about) == ("m", "1.0", False)
    assert [one["base_url"] for one in found.about["targets"]] == [A, B]


async def test_where_one_is_simulated_so_are_the_numbers_of_all(probed, monkeypatch):
    answers, probe_one = probed[0], server._probe_one
    answers |= {A: (["m"], "1.0"), B: (["m"], "1.0")}

    async def of_which_b_is_simulated(settings, on_progress):
        return structs.replace(
            await probe_one(settings, on_progress), simulated=settings.urls == (B,)
        )

    assert not (await probe(BOTH)).simulated
    monkeypatch.setattr(server, "_probe_one", of_which_b_is_simulated)
    assert (await probe(BOTH)).simulated


async def test_target_that_is_down_is_named_and_ends_the_probe(probed):
    answers, seen = probed
    answers |= {A: (["m"], "1.0"), B: Unreachable(f"{B}: refused")}
    with pytest.raises(Unreachable, match=B):
        await probe(BOTH)
    assert seen == [A, B]


@pytest.mark.parametrize("again", [A, A + "/", "HTTP://A:8000", "http://user:key@a:8000"])
async def test_target_given_twice_is_refused_before_any_probe(probed, again):
    with pytest.raises(BadInput, match=r"(?i)--base-url: http://a:8000 is given twice"):
        await probe(BOTH.replace(base_url=(A, B, again)))
    assert probed[1] == []


async def test_the_usual_port_need_not_be_named(probed):
    with pytest.raises(BadInput, match="given twice"):
        await probe(BOTH.replace(base_url=("https://a", "https://a:443")))


async def test_invalid_url_among_several_is_refused():
    with pytest.raises(BadInput, match=r"^--base-url: .*'b'"):
        await probe(BOTH.replace(base_url=(A, "b")))


async def test_different_models_without_a_choice_are_refused(probed):
    probed[0].update({A: (["m"], "1"), B: (["other"], "1")})
    with pytest.raises(BadInput) as refused:
        await probe(BOTH)
    assert str(refused.value).startswith("--model: ")
    assert f"m at {A}; other at {B}" in str(refused.value)


async def test_other_differences_are_warned_of_in_one_line_and_kept(probed, caplog):
    probed[0].update({A: (["m"], "0.11"), B: (["m", "lora"], "0.12")})
    with caplog.at_level(logging.WARNING):
        found = await probe(BOTH)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"--base-url: the servers differ in their versions: 0.11 at {A}; 0.12 at {B}; "
        f"the models that they list: m at {A}; m, lora at {B}"
    )
    assert found.about["version"] == "0.11 and 0.12"
    assert len(found.about["differ"]) == 2


async def test_continuous_usage_is_off_if_one_target_refuses_it(probed, monkeypatch):
    probed[0].update({A: (["m"], "1"), B: (["m"], "1")})
    probe_one = server._probe_one

    async def one_refuses(settings, on_progress):
        found = await probe_one(settings, on_progress)
        return Server(
            found.settings.replace(continuous_usage=settings.urls != (B,)),
            "m",
            found.about,
            models=("m",),
        )

    monkeypatch.setattr(server, "_probe_one", one_refuses)
    found = await probe(BOTH.replace(continuous_usage=True))
    assert (found.settings.continuous_usage, found.about["continuous_usage"]) == (False, "refused")


async def test_a_single_one_is_probed_as_ever(monkeypatch):
    async def probe_one(settings, on_progress):
        return settings

    monkeypatch.setattr(server, "_probe_one", probe_one)
    settings = RunSettings(base_url=A)
    assert await probe(settings) is settings
