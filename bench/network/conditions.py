"""Conditions: the links, answers and clients whose bounds are tried."""

from dataclasses import dataclass

from bench.accuracy.conditions import Condition, alone, beside_hogs, stopped


@dataclass(frozen=True)
class Network:
    """What lies between client and server.

    Attributes:
        name: In the table.
        round_trip_ms: Delay, both ways together.
        loss: Share of the packets that are lost, both ways.
        reorder: Share of the packets that are delayed further, by up to `reorder_ms`.
        reorder_ms: The same.
        text_bytes: Length of each token.
        receive_buffer: Bytes that a socket of the client may hold; 0: as the kernel likes.
        beside: What disturbs the client.
    """

    name: str
    round_trip_ms: float
    loss: float = 0.0
    reorder: float = 0.0
    reorder_ms: float = 0.0
    text_bytes: int = 5
    receive_buffer: int = 0
    beside: Condition = alone


NETWORKS = (
    Network("RTT 5 ms", 5),
    Network("RTT 5 ms, 0.1 % lost", 5, loss=0.001),
    Network("RTT 20 ms, 0.5 % lost", 20, loss=0.005),
    Network("RTT 40 ms, 1 % lost", 40, loss=0.01),
    Network("RTT 100 ms, 2 % lost", 100, loss=0.02),
    Network("RTT 20 ms, 2 % reordered", 20, reorder=0.02, reorder_ms=30),
    Network("RTT 100 ms, 0.5 % lost, 1 % reordered", 100, 0.005, 0.01, 30),
    Network("RTT 40 ms, 1 % lost, tokens of 6,000 bytes", 40, 0.01, text_bytes=6000),
    Network(
        "RTT 20 ms, 0.5 % lost, window of 8 KiB, tokens of 2,000 bytes",
        20,
        0.005,
        text_bytes=2000,
        receive_buffer=16384,
    ),
    Network("RTT 20 ms, 1 % lost, both cores busy", 20, 0.01, beside=beside_hogs),
    Network("RTT 20 ms, 1 % lost, client stopped for 50 ms", 20, 0.01, beside=stopped),
)
