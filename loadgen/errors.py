"""The one tree of errors: each says what was wrong, with which value, and what to do about it."""


class LoadgenError(Exception):
    """Anything loadgen raises on purpose."""


class BadInput(LoadgenError):
    """A setting or input file that cannot be used; found before anything is sent.

    Args:
        field: The flag or key at fault, as the user wrote it (`--request-rate`); FILE where it is a file without one,
            which `problem` then begins with.
        problem: What is wrong with it, with the value.
        remedy: What to write instead.
    """

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        said = f"{problem}; {remedy}"
        super().__init__(said if field == "FILE" else f"{field}: {said}")  # a file that no flag names, names itself
        self.field, self.problem, self.remedy = field, problem, remedy

    def __reduce__(self) -> tuple[type["BadInput"], tuple[str, str, str]]:
        return type(self), (self.field, self.problem, self.remedy)  # it crosses between processes


class Unreachable(LoadgenError):
    """A server that does not answer where the settings say it should."""


class GivenUp(LoadgenError):
    """A run that was given up and has no result, as by an interrupt before anything was measured.

    No KeyboardInterrupt, which a loop would take for its own.
    """


class EngineError(LoadgenError):
    """An inference engine that did not start, or did not stop.

    Attributes:
        transient: Whether the same again may end otherwise.
    """

    transient = False


class WorkerDied(LoadgenError):
    """A process that measured has gone without a word; what it had written of its run is left.

    Args:
        who: Which, as in "worker 2 of 3".
        how: As in "was killed by signal 9".
    """

    def __init__(self, who: str, how: str) -> None:
        super().__init__(f"{who} {how}")
        self.who, self.how = who, how

    def __reduce__(self) -> tuple[type["WorkerDied"], tuple[str, str]]:
        return type(self), (self.who, self.how)  # it crosses between machines
