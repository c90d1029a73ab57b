"""A plain open-loop client, as one writes it without loadgen: aiohttp, uvloop, orjson, one task per
request.

    python -m bench.performance.plain_client URL RATE COUNT TOKENS

It paces on absolute times, stamps every token, keeps TTFT and ITL in lists, and prints one line of
JSON. CPU seconds (user and system) count from the first send to the last end; connections are
opened, if wanted, before that.
"""

import argparse
import asyncio
import itertools
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
import uvloop

HEADERS = {"Content-Type": "application/json"}
PROMPT = " ".join(["prompt"] * 128)
LEAD_S = 0.05


@dataclass
class Client:
    """Asks one thing again and again, and keeps what it sees, in ns."""

    session: aiohttp.ClientSession
    url: str
    body: bytes
    sent: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    ttft: list[int] = field(default_factory=list)
    itl: list[int] = field(default_factory=list)
    last_end: int = 0

    async def ask(self, due_ns: int) -> None:
        """Send one request and follow its answer to the end."""
        stamps = []
        sent_ns = time.monotonic_ns()
        async with self.session.post(self.url, data=self.body, headers=HEADERS) as response:
            response.raise_for_status()
            async for line in response.content:
                at_ns = time.monotonic_ns()
                if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                    continue
                choices = orjson.loads(line[6:])["choices"]
                if choices and choices[0]["delta"].get("content"):
                    stamps.append(at_ns)
        self.last_end = time.monotonic_ns()
        self.sent.append(sent_ns)
        self.late.append(sent_ns - due_ns)
        self.ttft.append(stamps[0] - sent_ns)
        self.itl.extend(after - before for before, after in itertools.pairwise(stamps))

    async def keep_pace(self, rate: float, count: int) -> None:
        """Send `count` requests at a constant rate, whatever becomes of them, and wait until all
        have ended.
        """
        loop = asyncio.get_running_loop()
        start_ns = time.monotonic_ns() + int(LEAD_S * 1e9)
        tasks = []
        for number in range(count):
            due_ns = start_ns + int(number / rate * 1e9)
            await asyncio.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
            tasks.append(loop.create_task(self.ask(due_ns)))
        await asyncio.gather(*tasks)


def body(model: str, tokens: int) -> bytes:
    """A chat request for an answer of `tokens` tokens."""
    return orjson.dumps(
        {
            "model": model,
            "messages": [{"role": "user", "content": PROMPT}],
            "max_completion_tokens": tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )


async def main(flags: argparse.Namespace) -> dict[str, Any]:
    """Carry out the run; returns what it found."""
    url = f"{flags.url}/v1/chat/completions"
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, timeout=aiohttp.ClientTimeout(total=None)
    ) as session:
        opening = Client(session, url, body(flags.model, 1))
        await asyncio.gather(*(opening.ask(0) for _ in range(flags.connections)))
        client = Client(session, url, body(flags.model, flags.tokens))
        startup_cpu_s = time.process_time()
        await client.keep_pace(flags.rate, flags.count)
        cpu_s = time.process_time() - startup_cpu_s
    return {
        "requests": len(client.sent),
        "tokens": len(client.ttft) + len(client.itl),
        "cpu_s": cpu_s,
        "startup_cpu_s": startup_cpu_s,
        "wall_s": (client.last_end - min(client.sent)) / 1e9,
        "achieved_rps": (len(client.sent) - 1) / (max(client.sent) - min(client.sent)) * 1e9,
        "late_p50_ms": percentile(client.late, 50),
        "late_p99_ms": percentile(client.late, 99),
        "late_max_ms": max(client.late) / 1e6,
        "ttft_p50_ms": percentile(client.ttft, 50),
        "ttft_p99_ms": percentile(client.ttft, 99),
        "peak_mb": peak_mb(),
    }


def percentile(values_ns: list[int], p: int) -> float:
    """The p-th percentile, in ms."""
    return statistics.quantiles(values_ns, n=100, method="inclusive")[p - 1] / 1e6


def peak_mb() -> float:
    """The most memory this process has had resident; getrusage would tell its parent's, were
    that larger.
    """
    with open("/proc/self/status") as status:
        return (
            next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024 / 1e6
        )


def parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    result = argparse.ArgumentParser(description="A plain open-loop client.")
    result.add_argument("url", help="scheme, host and port")
    result.add_argument("rate", type=float, help="requests per second")
    result.add_argument("count", type=int, help="requests, 2 or more")
    result.add_argument("tokens", type=int, help="tokens of each answer")
    result.add_argument(
        "--connections", type=int, default=0, help="how many are opened before the first request"
    )
    result.add_argument("--model", default="sim", help="name that the server knows")
    return result


if __name__ == "__main__":
    print(orjson.dumps(uvloop.run(main(parser().parse_args()))).decode())
