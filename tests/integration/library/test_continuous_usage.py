"""--continuous-usage: usage with every event where the server supports it."""

import loadgen
from loadgen import report
from loadgen.engines.sim.http1 import Request, error_body, whole
from loadgen.testing.replies import DONE, event, streamed, usage
from tests.helpers.repeated import Repeated
from tests.helpers.scripted_server import chatting, serving

SETTINGS = loadgen.RunSettings(
    backend="openai-chat", num_prompts=3, request_rate=100, continuous_usage=True
)


MINE = Repeated(loadgen.Prompt("Hello", 1, 5, "mine"))


class Counting:
    """A server that counts tokens in every event if asked to, or refuses to be asked.

    Attributes:
        asked: For each request, whether it was asked to.
    """

    def __init__(self, *, knows: bool) -> None:
        self.knows = knows
        self.asked: list[bool] = []

    def reply(self, ask: Request) -> bytes:
        each = "continuous_usage_stats" in ask.json["stream_options"]
        self.asked.append(each)
        if each and not self.knows:
            return whole(400, error_body("unknown", 400, "continuous_usage_stats"))
        counts = [
            {"usage": {"prompt_tokens": 1, "completion_tokens": n}} if each else {} for n in (2, 5)
        ]
        body = event(choices=[{"index": 0, "delta": {"content": "a b"}}], **counts[0])
        body += event(
            choices=[{"index": 0, "delta": {"content": "c d e"}, "finish_reason": "stop"}],
            **counts[1],
        )
        return streamed(body + usage(prompt_tokens=1, completion_tokens=5) + DONE)


async def test_each_event_has_its_tokens_where_the_server_counts_them() -> None:
    server = Counting(knows=True)
    async with serving(chatting(server.reply)) as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url), dataset=MINE)
    own = result.data["loadgen"]
    assert own["tokens"]["itl_counted_by"] == "usage"
    assert own["tokens"]["imputed_gaps"] == 9  # three in each of three answers
    assert own["provenance"]["settings"]["continuous_usage"] is True
    assert server.asked == [True] * 4  # one to see whether the server takes it
    assert "\n  ITL  " in report.render(result)


async def test_a_server_that_refuses_it_is_asked_without() -> None:
    server = Counting(knows=False)
    async with serving(chatting(server.reply)) as url:
        result = await loadgen.run(SETTINGS.replace(base_url=url), dataset=MINE)
    own = result.data["loadgen"]
    assert result.data["completed"] == 3
    assert own["tokens"]["itl_counted_by"] == "events"
    assert own["provenance"]["engine"]["continuous_usage"] == "refused"
    assert own["provenance"]["settings"]["continuous_usage"] is False
    assert own["provenance"]["asked"]["continuous_usage"] is True
    assert server.asked == [True] + [False] * 4
