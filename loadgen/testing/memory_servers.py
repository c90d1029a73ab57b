"""Servers for the memory network, whose latencies follow from theory or arithmetic."""

import functools
import heapq
from collections.abc import Callable, Sequence

from loadgen.engines.sim.http1 import LAST_CHUNK, chunk
from loadgen.testing.memory import Reply, Server
from loadgen.testing.replies import DONE, STREAM, delta, usage


def answered(tokens_ns: Sequence[int]) -> Reply:
    """Return a complete answer with one token at each of these times (ns on the clock, at least
    one, in order).

    The head comes with the first token; the finish reason, the usage and the end of the body with
    the last one.
    """
    return Reply(list(zip(tokens_ns, _parts(len(tokens_ns)), strict=True)))


def planned(offsets_ns: Callable[[int], Sequence[int]]) -> Server:
    """Return a server of any capacity: request `index` gets a token at each of
    `offsets_ns(index)` after arrival.
    """
    return lambda index, body, arrived_ns: answered(
        [arrived_ns + offset for offset in offsets_ns(index)]
    )


def queued(service_ns: Callable[[int], int], servers: int = 1) -> Server:
    """Return a queue with `servers` servers, first come, first served; a request gets one token at
    its end of service.

    Args:
        service_ns: Service time of request `index`, ns.
        servers: Number of requests that are served at once.
    """
    free_ns = [0] * servers  # a heap: when each server will be free

    def serve(index: int, body: bytes, arrived_ns: int) -> Reply:
        served_ns = max(arrived_ns, free_ns[0]) + service_ns(index)
        heapq.heapreplace(free_ns, served_ns)
        return answered([served_ns])

    return serve


def stalled(server: Server, from_ns: int, until_ns: int) -> Server:
    """Return `server`, paused between two times (ns on the clock).

    What it would have written meanwhile is written at `until_ns`, and requests that arrive
    meanwhile begin then.
    """

    def after(at_ns: int) -> int:
        return until_ns if from_ns <= at_ns < until_ns else at_ns

    return lambda index, body, arrived_ns: _moved(server(index, body, after(arrived_ns)), after)


def distant(server: Server, delay_ns: int) -> Server:
    """Return `server`, with replies that reach the client `delay_ns` later."""
    return lambda index, body, arrived_ns: _moved(
        server(index, body, arrived_ns), lambda at_ns: at_ns + delay_ns
    )


def _moved(reply: Reply, to: Callable[[int], int]) -> Reply:
    closes_ns = None if reply.closes_ns is None else to(reply.closes_ns)
    return Reply([(to(at_ns), data) for at_ns, data in reply.parts], closes_ns, reply.error)


@functools.cache
def _parts(tokens: int) -> list[bytes]:
    """Return the bytes of an answer of `tokens` tokens, one part for each token."""
    parts = [chunk(delta(content=" token"))] * tokens
    parts[0] = STREAM + parts[0]
    parts[-1] += chunk(delta("stop") + usage(completion_tokens=tokens) + DONE) + LAST_CHUNK
    return parts
