"""ServerWords: what the server's metrics say of a run's queue, and how its engine spells a knob."""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct, field

from loadgen.metrics.server.series import TICK
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.util.arrays import Bools, Floats


class ServerWords(Struct, frozen=True):
    """What one server said; empty where it said nothing, or where there are several.

    Attributes:
        running, waiting, kv_usage: Its requests and the share of its KV cache, once a second; NaN:
            not said.
        preemptions: How many requests it preempted.
        ttft_ms, queue_ms, prefill_ms: The means of its own TTFTs, and of two parts of them; None:
            not said.
        drafts: How often it decoded speculatively.
        metrics: The names of its metrics.
    """

    running: Floats = field(default_factory=lambda: np.empty(0))
    waiting: Floats = field(default_factory=lambda: np.empty(0))
    kv_usage: Floats = field(default_factory=lambda: np.empty(0))
    preemptions: float = 0.0
    ttft_ms: float | None = None
    queue_ms: float | None = None
    prefill_ms: float | None = None
    drafts: float = 0.0
    metrics: tuple[str, ...] = ()

    @classmethod
    def of(cls, telemetry: Telemetry | None) -> "ServerWords":
        """Read them from the metrics of a run; None: it has none."""
        if telemetry is None or len(telemetry.sources) != 1:
            return cls()
        (source,) = telemetry.sources
        ticks = np.array([moment == TICK for moment in source.moments], dtype=bool)

        def level(name: str) -> Floats:
            values = np.array(source.series.get(name, [None] * len(ticks)), dtype=float)
            chosen: Floats = values[ticks]
            return chosen

        ttft = telemetry.ttft if telemetry.covers else None

        def mean_ms(quantity: str) -> float | None:
            mean_s = telemetry.mean(quantity) if telemetry.covers else None
            return None if mean_s is None else mean_s * 1e3

        return cls(
            level("running"),
            level("waiting"),
            level("kv_usage"),
            source.increase("preemptions") or 0.0,
            None if ttft is None or ttft.mean is None else ttft.mean * 1e3,
            mean_ms("queue"),
            mean_ms("prefill"),
            source.increase("drafts") or 0.0,
            tuple(source.names.values()),
        )

    @property
    def tells_queue(self) -> bool:
        """Whether it said how many requests run and wait, and some did wait."""
        return int((self.waiting[self.is_told] > 0).sum()) >= 2

    @property
    def is_told(self) -> Bools:
        """When it said both how many requests run, and how many wait."""
        is_told: Bools = np.isfinite(self.running) & np.isfinite(self.waiting)
        return is_told

    @property
    def knobs(self) -> Mapping[str, str]:
        """The names of the engine's knobs, by those of its metrics; empty: it is not known."""
        # 20 ms of CPU time, which runs without a cause need not spend.
        from loadgen.engines.kinds import llamacpp, sglang, trtllm, vllm

        tables = {
            "vllm:": vllm.TABLE,  # loadgen's simulator, too
            "sglang:": sglang.TABLE,
            "trtllm_": trtllm.TABLE,
            "llamacpp:": llamacpp.TABLE,
        }
        for name in self.metrics:
            for prefix, table in tables.items():
                if name.startswith(prefix):
                    return table.own_names(None)
        return {}
