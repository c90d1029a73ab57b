"""Transient phases: requests at the beginning and at the end of a run that the summary leaves
out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.errors import BadInput

FORM = 'write a number of requests, a share below 1, or {"percent": 0.1, "mode": "requests"}'
KEYS = {"percent", "value", "mode"}
DEFAULT_MODE = "prefer_duration"  # guidellm's
MODES = ("requests", "duration", "prefer_requests", "prefer_duration")


@dataclass(frozen=True, slots=True)
class Transient:
    """One phase. The default is none.

    Attributes:
        amount: Requests or seconds from 1 on; below 1: a share of the run.
        mode: requests or duration: what is counted. With "prefer_" the other one, if the run has no
            such limit.
    """

    amount: float = 0.0
    mode: str = DEFAULT_MODE

    @classmethod
    def parse(cls, flag: str, value: Any) -> "Transient":
        """Parse the value of `--warmup` or `--cooldown`, as guidellm reads it.

        Args:
            flag: The flag.
            value: A number, or an object with `percent` or `value`, and `mode`; None: no phase.

        Raises:
            BadInput: It is neither.
        """
        if value is None:
            return cls()
        keys = value if isinstance(value, dict) else {"value": value}
        amounts = [keys[key] for key in ("percent", "value") if keys.get(key) is not None]
        mode = keys.get("mode", DEFAULT_MODE)
        if set(keys) - KEYS or len(amounts) != 1 or mode not in MODES:
            raise BadInput(flag, f"invalid phase {value!r}", FORM)
        (amount,) = amounts
        if (
            isinstance(amount, bool)
            or not isinstance(amount, int | float)
            or not 0 <= amount < float("inf")
        ):
            raise BadInput(flag, f"{amount!r} is not a number from 0 on", FORM)
        if keys.get("percent") is not None and amount >= 1:
            raise BadInput(
                flag, f"percent {amount:g} is out of range", "write a share below 1, such as 0.1"
            )
        return cls(float(amount), mode)

    def limits(self, settings: RunSettings) -> tuple[int, float]:
        """Return how many requests, and how many seconds of sending, a run leaves out; one of
        them is 0.
        """
        count = settings.num_prompts
        duration_s = settings.duration
        by_time = self.mode == "duration" or (
            self.mode == "prefer_duration" and duration_s is not None
        )
        if self.mode == "prefer_requests":
            by_time = count is None
        if by_time:
            return 0, self.amount * (duration_s or 0.0) if self.amount < 1 else self.amount
        return int(self.amount * (count or 0) if self.amount < 1 else self.amount), 0.0


@dataclass(frozen=True, slots=True)
class Transients:
    """The requests that count: all but those of the warm-up and those of the cool-down.

    Attributes:
        warmup: The phase at the beginning of a run.
        cooldown: The phase at its end.
    """

    warmup: Transient = Transient()
    cooldown: Transient = Transient()

    @classmethod
    def of(cls, flags: dict[str, Any]) -> "Transients":
        """Return the phases of a command line, as `arguments.parse` returns it.

        Raises:
            BadInput: A value is wrong.
        """
        return cls(
            *(Transient.parse(f"--{name}", flags.get(name)) for name in ("warmup", "cooldown"))
        )

    def check(self, settings: RunSettings) -> None:
        """Check that a run has requests that count.

        Raises:
            BadInput: It has none, or a phase is given in requests or seconds of which the run has
                no number.
        """
        for flag, phase in (("--warmup", self.warmup), ("--cooldown", self.cooldown)):
            if phase.mode == "requests" and phase.amount and settings.num_prompts is None:
                raise BadInput(
                    flag,
                    "counts requests, and the run has no number of them",
                    "give --max-requests",
                )
            if phase.mode == "duration" and phase.amount and settings.duration is None:
                raise BadInput(
                    flag, "counts seconds, and the run has no number of them", "give --max-seconds"
                )
        (first, first_s), (last, last_s) = (
            self.warmup.limits(settings),
            self.cooldown.limits(settings),
        )
        too_many = settings.num_prompts is not None and first + last >= settings.num_prompts
        too_long = settings.duration is not None and first_s + last_s >= settings.duration
        if too_many or too_long:
            flag = "--warmup" if self.warmup.amount else "--cooldown"
            whole = f"{settings.num_prompts} requests" if too_many else f"{settings.duration:g} s"
            raise BadInput(
                flag,
                f"no request of the {whole} of a run would count",
                "give a smaller number, or a share",
            )

    def counted(self, records: Sequence[Record], settings: RunSettings) -> list[Record]:
        """Return the records that count.

        Args:
            records: All of a run.
            settings: Those of the run.
        """
        sent = sorted((record for record in records if record.sent), key=lambda record: record.sent)
        (first, first_s), (last, last_s) = (
            self.warmup.limits(settings),
            self.cooldown.limits(settings),
        )
        left_out = {record.index for record in sent[:first]}
        left_out |= {record.index for record in sent[max(0, len(sent) - last) :]} if last else set()
        if sent:
            begin = sent[0].sent + first_s * 1e9
            end = sent[-1].sent - last_s * 1e9
            left_out |= {
                record.index for record in sent if record.sent < begin or record.sent > end
            }
        return [record for record in records if record.index not in left_out]


NO_TRANSIENTS = Transients()
