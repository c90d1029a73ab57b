"""Prometheus' text format: version 0.0.4, and OpenMetrics as servers send it."""

import re

Sample = tuple[str, dict[str, str], float]  # name, labels, value
_LABEL = r'({0}[a-zA-Z_]\w*)\s*=\s*"({0}(?:[^"\\]|\\.)*+)"'  # {0}: "" where its parts are wanted, else "?:"
_NUMBER = r"[-+]?(?i:nan|inf(?:inity)?|(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d++)?)"
_LABELS = re.compile(_LABEL.format(""), re.ASCII)
# After the value come, in some lines, a timestamp and an exemplar.
_SAMPLE = re.compile(
    rf"([a-zA-Z_:][\w:]*+)(?:\s*\{{\s*((?:{_LABEL.format('?:')}\s*(?:,\s*|(?=\}})))*+)\}}\s*|\s+)"
    rf"({_NUMBER})(?:\s+{_NUMBER})?(?:\s+#.*)?",
    re.ASCII,
)
_ESCAPED = re.compile(r'\\[\\n"]')


def samples(text: str) -> list[Sample]:
    """Return the samples of all lines but comments, without timestamps and exemplars.

    Raises:
        ValueError: A line is no sample; the message names it.
    """
    lines = map(str.strip, text.split("\n"))
    return [_sample(line) for line in lines if line and line[0] != "#"]


def _sample(line: str) -> Sample:
    found = _SAMPLE.fullmatch(line)
    if not found:
        raise ValueError(f"no sample: {line!r}")
    name, labels, value = found.groups()
    return name, {label: _unescape(text) for label, text in _LABELS.findall(labels)} if labels else {}, float(value)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: found[0][1].replace("n", "\n"), text) if "\\" in text else text
