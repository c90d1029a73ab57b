"""Which servers' metrics are scraped, with which credentials, and whose GPUs are read.

No server is started.
"""

import base64
from pathlib import Path

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import Unreachable
from loadgen.runner import metrics_scraper_main
from loadgen.runner.metrics_scraper_main import scrape_order
from loadgen.util import http_client
from loadgen.util.http_client import Reply
from loadgen.util.route import Route

FOLDER = Path("/nowhere")
TEXT, JSON, HTML = Reply(200, b"up 1\n", {}), Reply(200, b"[]", {}), Reply(200, b"<html>", {})
MISSING = Reply(404, b"", {})


@pytest.fixture
def asked(monkeypatch):
    """What servers answer, by URL; whom it does not name does not answer.

    What was asked is in the list.
    """
    answers, urls = {}, []

    async def get(url, **options):
        urls.append(url)
        if url not in answers:
            raise Unreachable(f"{url}: no answer in 2 s")
        return answers[url]

    monkeypatch.setattr(http_client, "get", get)
    monkeypatch.setattr(metrics_scraper_main.accelerators, "installed", lambda: True)
    answers["urls"] = urls
    return answers


async def urls(base="http://h:8000", simulated=False, **settings):
    order = await scrape_order(RunSettings(base_url=base, **settings), FOLDER, simulated=simulated)
    return [source.url for source in order.sources] if order else []


@pytest.mark.parametrize("given", [(), ("auto",)])
async def test_by_itself_it_asks_at_metrics_below_the_base_url(asked, given):
    asked["http://h:8000/v/metrics"] = TEXT
    assert await urls("http://h:8000/v/", server_metrics=given) == ["http://h:8000/v/metrics"]


@pytest.mark.parametrize("answer", [HTML, MISSING, None])
async def test_a_server_that_does_not_tell_is_asked_no_more(asked, answer):
    if answer:
        asked["http://h:8000/metrics"] = answer
    assert await urls() == []
    assert asked["urls"] == ["http://h:8000/metrics"]


@pytest.mark.parametrize(
    ("second", "chosen"),
    [(TEXT, "/prometheus/metrics"), (HTML, "/metrics"), (MISSING, "/metrics"), (None, "/metrics")],
)
async def test_where_json_is_told_text_is_looked_for_where_tensorrt_llm_has_it(
    asked, second, chosen
):
    asked["http://h:8000/metrics"] = JSON
    if second:
        asked["http://h:8000/prometheus/metrics"] = second
    assert await urls() == [f"http://h:8000{chosen}"]


async def test_the_simulator_is_known_to_tell_and_has_no_gpu(asked):
    order = await scrape_order(RunSettings(base_url="http://127.0.0.1:9"), FOLDER, simulated=True)
    assert order is not None
    assert [source.url for source in order.sources] == ["http://127.0.0.1:9/metrics"]
    assert (order.folder, order.gpus, asked["urls"]) == (FOLDER, False, [])


@pytest.mark.parametrize("simulated", [True, False])
async def test_off_is_off(asked, simulated):
    assert (
        await scrape_order(RunSettings(server_metrics=("off",)), FOLDER, simulated=simulated)
        is None
    )
    assert asked["urls"] == []


@pytest.mark.parametrize(
    ("base", "url", "told"),
    [
        ("http://h:8000", "http://h:8000/other", True),
        ("http://h", "http://h:80/metrics", True),
        ("https://h", "https://h:443/metrics", True),
        ("http://H:8000", "http://h:8000/metrics", True),
        ("http://h:8000", "http://h:8001/metrics", False),
        ("http://h:8000", "https://h:8000/metrics", False),
        ("http://h:8000", "http://g:8000/metrics", False),
        ("http://h:8000", "http://h.evil:8000/metrics", False),
    ],
)
async def test_credentials_are_for_the_origin_of_the_target_alone(asked, base, url, told):
    asked[url] = TEXT
    settings = RunSettings(
        base_url=base, api_key="sk-secret", header=("X-Tenant=t",), server_metrics=(url,)
    )
    order = await scrape_order(settings, FOLDER)
    assert order is not None
    expected = {"Authorization": "Bearer sk-secret", "X-Tenant": "t"} if told else {}
    assert order.sources[0].headers == expected
    assert order.sources[0].target == base


async def test_a_url_that_is_named_twice_is_asked_once(asked):
    asked["http://h/metrics"] = TEXT
    asked["http://g/metrics"] = TEXT
    given = ("http://h/metrics", "http://g/metrics", "http://h/metrics")
    assert await urls(server_metrics=given) == ["http://h/metrics", "http://g/metrics"]


async def test_certificates_are_checked_unless_the_settings_say_otherwise(asked):
    asked["https://h/metrics"] = TEXT
    for insecure in (False, True):
        order = await scrape_order(RunSettings(base_url="https://h", insecure=insecure), FOLDER)
        assert order is not None
        assert order.sources[0].route == Route(verify=not insecure)


@pytest.mark.parametrize(
    ("base", "here"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://127.9.9.9:8000", True),
        ("http://[::1]:8000", True),
        ("http://localhost:8000", True),
        ("http://10.0.0.7:8000", False),
        ("http://localhost.example.org:8000", False),
    ],
)
async def test_gpus_are_read_where_the_server_is_on_this_machine(asked, base, here, monkeypatch):
    order = await scrape_order(RunSettings(base_url=base), FOLDER)
    assert (order is not None and order.gpus) is here
    monkeypatch.setattr(metrics_scraper_main.accelerators, "installed", lambda: False)
    assert await scrape_order(RunSettings(base_url=base), FOLDER) is None


async def test_metrics_are_scraped_from_all_targets_or_none(asked):
    both = ("http://a:1", "http://b:2")
    assert await urls(both) == []
    asked["http://a:1/metrics"] = TEXT
    assert await urls(both) == []
    order = await scrape_order(RunSettings(base_url=both), FOLDER)
    assert order.missing == ("http://b:2",)
    asked["http://b:2/metrics"] = TEXT
    assert await urls(both) == ["http://a:1/metrics", "http://b:2/metrics"]


@pytest.mark.parametrize(
    ("named", "missing"),
    [
        (("http://a:1/metrics",), ("http://b:2",)),
        (("http://a:1/metrics", "http://b:2/metrics"), ()),
        (("http://router:9/metrics",), ()),
    ],
)
async def test_a_target_whose_metrics_are_not_named_is_missing(asked, named, missing):
    asked.update(dict.fromkeys(named, TEXT))
    settings = RunSettings(base_url=("http://a:1", "http://b:2"), server_metrics=named)
    assert (await scrape_order(settings, FOLDER)).missing == missing


async def test_a_key_goes_to_the_target_of_the_same_origin_alone(asked):
    asked["http://b:2/other"] = TEXT
    both = ("http://u:one@a:1", "http://u:two@b:2")
    order = await scrape_order(
        RunSettings(base_url=both, server_metrics=("http://b:2/other",)), FOLDER
    )
    (source,) = order.sources
    assert source.target == "http://b:2"
    assert source.headers["Authorization"].startswith("Basic ")
    assert "two" in base64.b64decode(source.headers["Authorization"].split()[1]).decode()


BLOCKS = Reply(200, b'vllm:cache_config_info{block_size="32"} 1\n', {})


@pytest.mark.parametrize("given", [(), ("http://h:8000/metrics",)])
async def test_the_answer_that_shows_metrics_says_the_size_of_a_block(asked, given):
    asked["http://h:8000/metrics"] = BLOCKS
    order = await scrape_order(RunSettings(base_url="http://h:8000", server_metrics=given), FOLDER)
    assert (order.cache_block.tokens, order.cache_block.source) == (32, "vllm:cache_config_info")
    assert asked["urls"] == ["http://h:8000/metrics"]


async def test_metrics_without_a_cache_have_no_block(asked):
    asked["http://h:8000/metrics"] = TEXT
    order = await scrape_order(RunSettings(base_url="http://h:8000"), FOLDER)
    assert order.cache_block is None
