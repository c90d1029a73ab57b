"""The exceptions of loadgen. Each message names the problem, the value, and the remedy."""

# Why a run ended early: its user has stopped it; a search has, and says why.
INTERRUPTED, ENDED_BY_SEARCH = "interrupted", "ended by the search"


class LoadgenError(Exception):
    """Base class of all errors that loadgen raises."""


class BadInput(LoadgenError):
    """An invalid setting or input file, found before anything is sent.

    Args:
        field: The flag or key as the user wrote it (`--request-rate`); FILE for a file without a
            flag, whose name then begins `problem`.
        problem: The problem, with the value.
        remedy: What to write instead.
    """

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        text = f"{problem}; {remedy}"
        # Without a flag, the file names itself.
        super().__init__(text if field == "FILE" else f"{field}: {text}")
        self.field, self.problem, self.remedy = field, problem, remedy

    def __reduce__(self) -> tuple[type["BadInput"], tuple[str, str, str]]:
        return type(self), (self.field, self.problem, self.remedy)  # it crosses between processes


class Unreachable(LoadgenError):
    """A server that does not respond at the address in the settings.

    Args:
        text: The message.
        advises: Whether it says what to do.
    """

    def __init__(self, text: str, *, advises: bool = False) -> None:
        super().__init__(text)
        self.advises = advises


class NotWritten(LoadgenError):
    """A file that could not be written when its content was ready: a full disk, a device that
    fails.
    """


class GivenUp(LoadgenError):
    """A run without a result, for example after an interrupt before anything was measured.

    It is not a KeyboardInterrupt, which an event loop would handle itself.
    """


class EngineError(LoadgenError):
    """An inference engine that failed to start or to stop.

    Attributes:
        transient: Whether a retry may succeed.
    """

    transient = False


class WorkerDied(LoadgenError):
    """A measuring process died. The records that it wrote are kept.

    Args:
        who: The process, such as "worker 2 of 3".
        how: How it ended, such as "was killed by signal 9".
    """

    def __init__(self, who: str, how: str) -> None:
        super().__init__(f"{who} {how}")
        self.who, self.how = who, how

    def __reduce__(self) -> tuple[type["WorkerDied"], tuple[str, str]]:
        return type(self), (self.who, self.how)  # it crosses between machines


def first_line(error: Exception) -> str:
    """Return the first line of an error message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
