"""Servers for a network in memory, of which theory or arithmetic knows every latency."""

import functools
import heapq
from collections.abc import Callable, Sequence

from loadgen.testing.memory import Reply, Server
from loadgen.testing.replies import DONE, LAST_CHUNK, STREAM, chunk, delta, usage


def answered(tokens_ns: Sequence[int]) -> Reply:
    """A whole answer: one event with one token at each of these times (ns on the clock, at least one, in order).

    The head comes with the first token; the finish reason, the usage and the end of the body with the last.
    """
    return Reply(list(zip(tokens_ns, _parts(len(tokens_ns)), strict=True)))


def planned(offsets_ns: Callable[[int], Sequence[int]]) -> Server:
    """A server of any capacity: request `index` gets a token at each of `offsets_ns(index)`, ns after it arrives."""
    return lambda index, body, arrived_ns: answered([arrived_ns + offset for offset in offsets_ns(index)])


def queued(service_ns: Callable[[int], int], servers: int = 1) -> Server:
    """`servers` servers behind one queue, first come, first served: one token when a request has been served.

    Args:
        service_ns: How long serving request `index` takes, ns.
        servers: How many requests are served at once, each by one of them.
    """
    free_ns = [0] * servers  # a heap: when each of them has served all that it was given

    def serve(index: int, body: bytes, arrived_ns: int) -> Reply:
        served_ns = max(arrived_ns, free_ns[0]) + service_ns(index)
        heapq.heapreplace(free_ns, served_ns)
        return answered([served_ns])

    return serve


def stalled(server: Server, from_ns: int, until_ns: int) -> Server:
    """`server`, stopped between two times (ns on the clock): nothing is accepted or written, then all of it at once.

    It works as one that keeps its own appointments: what it was to write meanwhile is written at `until_ns`, and what
    arrives meanwhile it begins with then.
    """

    def after(at_ns: int) -> int:
        return until_ns if from_ns <= at_ns < until_ns else at_ns

    return lambda index, body, arrived_ns: _moved(server(index, body, after(arrived_ns)), after)


def distant(server: Server, delay_ns: int) -> Server:
    """`server`, whose replies take `delay_ns` on their way to the client."""
    return lambda index, body, arrived_ns: _moved(server(index, body, arrived_ns), lambda at_ns: at_ns + delay_ns)


def _moved(reply: Reply, to: Callable[[int], int]) -> Reply:
    closes_ns = None if reply.closes_ns is None else to(reply.closes_ns)
    return Reply([(to(at_ns), data) for at_ns, data in reply.parts], closes_ns, reply.error)


@functools.cache
def _parts(tokens: int) -> list[bytes]:
    """The bytes of an answer of so many tokens, one part for each of them."""
    parts = [chunk(delta(content=" token"))] * tokens
    parts[0] = STREAM + parts[0]
    parts[-1] += chunk(delta("stop") + usage(completion_tokens=tokens) + DONE) + LAST_CHUNK
    return parts
