"""Answer badge: the parts of an answer in one coloured line below the title of a page."""

from collections.abc import Iterable

from loadgen.report.html import Badge, NoteKind, Span, Tone, line
from loadgen.report.summary_line import Colour, Part

SEVERITY = (Colour.RED, Colour.YELLOW)  # the worst first; parts of other colours keep their order
KINDS: dict[Colour, NoteKind] = {Colour.RED: "danger", Colour.YELLOW: "warning"}


def answer_badge(parts: Iterable[Part], *, simulated: bool, answer: Colour = Colour.NONE) -> Badge:
    """Make a badge of the parts: red for failures, amber for caveats, blue for the simulator, else
    green.

    Args:
        parts: One at least.
        simulated: Whether loadgen's own simulator was measured.
        answer: The colour of the answer itself, which is the title of the page.
    """
    (first, worst), *others = sorted(parts, key=lambda part: _rank(part[1]))
    usual: NoteKind = "info" if simulated else "tip"
    text = line(Span(first, Tone.STRONG), *(f" \N{MIDDLE DOT} {other}" for other, _ in others))
    return Badge(KINDS.get(min(worst, answer, key=_rank), usual), text)


def _rank(colour: Colour) -> int:
    return SEVERITY.index(colour) if colour in SEVERITY else len(SEVERITY)
