"""The exceptions of loadgen. Each message names the problem, the value, and the remedy."""

import contextlib
from collections.abc import Callable, Iterator, Mapping

# Why a run ended early: its user has stopped it; a search has, and says why.
INTERRUPTED, ENDED_BY_SEARCH = "interrupted", "ended by the search"


class Spelling:
    """How the reader of an error writes settings: here as arguments of a Python function.

    A border, which is a command or a reader of files, has a subclass of its own.
    """

    def name(self, setting: str) -> str:
        """Return a setting as the reader writes it."""
        return setting

    def place(self, path: "Place") -> str:
        """Return the place of an error, from the outer to the inner part."""
        return ": ".join(self.text(str(part)) for part in path)

    def text(self, text: str) -> str:
        """Return a text with the settings that it names as the reader writes them."""
        parts = text.split(_EDGE)
        parts[1::2] = map(self.name, parts[1::2])
        return "".join(parts)


class Flags(Spelling):
    """Settings as flags of a command line.

    Args:
        names: Flags that have another name there, by the setting.
    """

    def __init__(self, names: "Mapping[str, str]") -> None:
        self._names = names

    def name(self, setting: str) -> str:
        """Return the flag."""
        return self._names.get(setting) or "--" + setting.replace("_", "-")


FLAGS = Flags({"classes": "--class"})  # of loadgen's own commands


class _Setting:
    """References to settings in the texts of errors: `setting.duration`, `setting(name)`."""

    def __call__(self, name: str) -> str:
        return f"{_EDGE}{name}{_EDGE}"

    def __getattr__(self, name: str) -> str:
        return self(name)


setting = _Setting()
Place = tuple[str | int, ...]  # the parts of an error's place: settings, names, positions from 0
_EDGE = "\0"  # around the name of a setting; no argument and no name of a file can contain it
_spelling = Spelling()  # of this process, for errors without one of their own


def spell(text: str, spelling: Spelling | None = None) -> str:
    """Return a text with the settings that it names spelled, for texts that no error holds.

    Args:
        text: The text, with references to settings.
        spelling: How; None: as all errors of this process do.
    """
    return (spelling or _spelling).text(text)


class LoadgenError(Exception):
    """Base class of all errors that loadgen raises.

    Attributes:
        spelling: How its text names settings; None: as all errors of this process do.
    """

    spelling: Spelling | None = None

    def spelled(self, text: str) -> str:
        """Return a text with the settings as the reader of this error writes them."""
        return spell(text, self.spelling)

    def __str__(self) -> str:
        return self.spelled(super().__str__())


@contextlib.contextmanager
def spelled(spelling: Spelling) -> Iterator[None]:
    """Have errors in the block, and those that leave it, name settings in this way; where such
    blocks are nested, the inner one counts.
    """
    global _spelling
    outer, _spelling = _spelling, spelling
    try:
        yield
    except LoadgenError as error:
        error.spelling = error.spelling or spelling
        raise
    finally:
        _spelling = outer


@contextlib.contextmanager
def placed(place: Callable[["Place"], "Place"]) -> Iterator[None]:
    """Change the path of each `BadInput` that leaves the block to what this makes of it."""
    try:
        yield
    except BadInput as error:
        error.path = place(error.path)
        raise


def within(*outer: str | int) -> contextlib.AbstractContextManager[None]:
    """Put what the block reads before the path of each `BadInput` that leaves it."""
    return placed(lambda path: (*outer, *path))


def written_as(places: Mapping[str, "Place"]) -> contextlib.AbstractContextManager[None]:
    """Have each `BadInput` that leaves the block say where a setting was written.

    Args:
        places: By the reference to the setting, its path.
    """
    return placed(lambda path: (*places.get(str(path[0]), path[:1]), *path[1:]) if path else path)


class BadInput(LoadgenError):
    """An invalid setting or input file, found before anything is sent.

    Its texts name settings by `setting`, and are spelled when they are read.

    Args:
        place: The setting, `setting.request_rate`; a file or a key in it; or the path to it. Empty:
            the problem says where it is.
        problem: The problem, with the value.
        remedy: What to write instead.

    Attributes:
        path: The path to what is wrong, from the outer to the inner part.
        texts: Problem and remedy, before they are spelled.
    """

    def __init__(self, place: str | Place, problem: str, remedy: str) -> None:
        self.path: Place = (place,) if isinstance(place, str) else place
        self.texts = problem, remedy
        super().__init__()

    def __reduce__(self) -> tuple[type["BadInput"], tuple[Place, str, str]]:
        return type(self), (self.path, *self.texts)  # it crosses between processes

    @property
    def field(self) -> str:
        """What is wrong, as its reader writes it; empty if the problem says it."""
        return (self.spelling or _spelling).place(self.path)

    @property
    def problem(self) -> str:
        """The problem, with the value."""
        return self.spelled(self.texts[0])

    @property
    def remedy(self) -> str:
        """What to write instead."""
        return self.spelled(self.texts[1])

    def __str__(self) -> str:
        text = f"{self.problem}; {self.remedy}"
        return f"{field}: {text}" if (field := self.field) else text


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
