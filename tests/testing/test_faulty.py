"""The faulty server: how a fault is chosen, and that it is produced as described."""

import asyncio
import re
import subprocess
import sys

import aiohttp
import pytest

from loadgen.engines.sim.http1 import RequestReader
from loadgen.errors import BadInput, Unreachable
from loadgen.testing.faults import FAULTS, chosen
from loadgen.testing.faults.fault import Shares
from loadgen.testing.faulty import HEADER, MODEL, Faulty, serving
from loadgen.testing.process import started
from loadgen.util import http_client

BODY = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "one two three"}],
    "max_completion_tokens": 5,
}
PATH = "/v1/chat/completions"


async def post(
    url: str, fault: str | None = None, path: str = PATH, **fields: object
) -> tuple[int, str]:
    headers = {HEADER: fault} if fault else {}
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            url + path, json=BODY | fields, headers=headers, allow_redirects=False
        ) as response,
    ):
        return response.status, await response.text()


class TestChoosing:
    @pytest.mark.integration
    async def test_a_request_names_its_fault(self, faulty: Faulty) -> None:
        assert (await post(faulty.url, "status:404"))[0] == 404
        assert (await post(faulty.url))[0] == 200
        assert faulty.played == {"status": 1, "none": 1}
        assert faulty.requests == 2

    @pytest.mark.integration
    @pytest.mark.parametrize("fault", ["statsu", "stall:x", "stall:-1", "reset:3", ":", "stall:"])
    async def test_a_fault_that_cannot_be_played_is_refused_by_name(
        self, faulty: Faulty, fault: str
    ) -> None:
        status, text = await post(faulty.url, fault)
        assert status == 400
        assert HEADER in text
        assert faulty.played == {}

    @pytest.mark.integration
    def test_a_plan_gives_each_fault_its_share_of_requests_by_number(self) -> None:
        shares = Shares.parse("reset=0.1,stall:3=0.2", seed=5)
        met = [shares.of(number) for number in range(20_000)]
        assert met.count((FAULTS["reset"], None)) == pytest.approx(2000, rel=0.1)
        assert met.count((FAULTS["stall"], 3)) == pytest.approx(4000, rel=0.1)
        assert met == [
            Shares.parse("reset=0.1,stall:3=0.2", seed=5).of(number) for number in range(20_000)
        ]
        assert met != [
            Shares.parse("reset=0.1,stall:3=0.2", seed=6).of(number) for number in range(20_000)
        ]

    def test_empty_plan_has_no_faults_and_full_plan_only_faults(self) -> None:
        assert {Shares.parse("").of(number) for number in range(100)} == {None}
        assert {Shares.parse("close=1").of(number) for number in range(100)} == {
            (FAULTS["close"], None)
        }

    @pytest.mark.parametrize(
        "text", ["reset", "reset=x", "reset=-1", "reset=1.1", "reset=0.6,close=0.6", "no=0.1", ","]
    )
    def test_a_plan_that_is_none_is_refused(self, text: str) -> None:
        with pytest.raises(BadInput) as caught:
            Shares.parse(text)
        assert caught.value.field == "--plan"

    @pytest.mark.integration
    async def test_named_fault_takes_precedence_over_the_plan(self) -> None:
        async with serving(Shares.parse("status:503=1")) as faulty:
            assert (await post(faulty.url))[0] == 503
            assert (await post(faulty.url, "status:404"))[0] == 404

    def test_every_fault_says_what_it_does_in_one_sentence(self) -> None:
        for name, fault in FAULTS.items():
            assert re.fullmatch(r"[a-z0-9-]+", name)
            assert re.fullmatch(r"[A-Z][^\n]*[^. ]\.", fault.does), name
            assert ("NUMBER" in fault.does or name == "wrong-shape") == (
                fault.default is not None
            ), name
            assert chosen(name, HEADER) == (fault, None)


class TestAnswering:
    @pytest.mark.integration
    async def test_good_answer_has_requested_tokens_and_usage(self, faulty: Faulty) -> None:
        _, text = await post(faulty.url)
        assert text.count('"content":" word') == 5
        assert "completion_tokens" not in text
        _, text = await post(faulty.url, stream_options={"include_usage": True})
        assert '"usage":{"prompt_tokens":3,"total_tokens":8,"completion_tokens":5}' in text

    @pytest.mark.integration
    async def test_completions_are_answered_as_such(self, faulty: Faulty) -> None:
        _, text = await post(
            faulty.url, path="/v1/completions", max_completion_tokens=None, max_tokens=3
        )
        assert text.count('"text":" word') == 3
        assert "delta" not in text

    @pytest.mark.integration
    async def test_models_and_counts_are_told_whatever_the_plan(self) -> None:
        async with serving(Shares.parse("reset=1")) as faulty:
            models = await http_client.get(faulty.url + "/v1/models")
            assert (await http_client.get(faulty.url + "/version")).status == 404
            counts = await http_client.get(faulty.url + "/counts")
        assert models.json()["data"][0]["id"] == MODEL
        assert counts.json() == {"requests": 0, "connections": 3, "played": {}}

    @pytest.mark.integration
    async def test_invalid_request_is_refused_and_not_counted(self, faulty: Faulty) -> None:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", int(faulty.url.rpartition(":")[2])
        )
        writer.write(b"\x16\x03\x01 hello\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.close()
        await writer.wait_closed()
        assert faulty.requests == 0

    def test_a_request_is_taken_when_it_is_whole_wherever_it_is_cut(self) -> None:
        wire = b"POST /a HTTP/1.1\r\nContent-Length: 3\r\nX-Fault: reset\r\n\r\nabc"
        reader = RequestReader()
        for byte in wire:
            assert reader.next_request() is None
            reader.feed(bytes([byte]))
        reader.feed(b"GET")
        request = reader.next_request()
        assert request is not None
        assert (request.method, request.path, request.body) == ("POST", "/a", b"abc")
        assert request.headers == {"content-length": "3", "x-fault": "reset"}
        assert reader.next_request() is None
        reader.feed(b" / HTTP/1.1\r\n\r\n")
        following = reader.next_request()
        assert following is not None
        assert following.method == "GET"

    @pytest.mark.integration
    async def test_a_probe_of_an_answer_without_end_is_given_up(self, faulty: Faulty) -> None:
        with pytest.raises(Unreachable, match="MiB"):
            await http_client.get(
                faulty.url + "/metrics", headers={HEADER: "endless"}, timeout_s=60
            )


class TestProcess:
    @pytest.mark.integration
    async def test_faulty_server_starts_as_a_program(self) -> None:
        with started("loadgen.testing.faulty", "--plan", "status:503=1", "--seed", "3") as server:
            assert (await post(server.url))[0] == 503
            counts = (await http_client.get(server.url + "/counts")).json()
        assert (counts["requests"], counts["played"]) == (1, {"status": 1})

    @pytest.mark.integration
    def test_a_plan_that_is_none_is_one_line(self) -> None:
        command = [sys.executable, "-m", "loadgen.testing.faulty", "--plan", "rest=1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert "'rest'" in done.stderr
