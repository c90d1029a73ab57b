"""Terminal: text of others made safe to show."""

import re

_ASCII = re.compile("[ -~]*")


def printable(text: str) -> str:
    """`text` on one line, with escapes such as \\x1b in the place of everything that a terminal might obey or hide.

    That is: control characters (C0, C1, line ends), bidirectional and other invisible format characters, separators,
    and what is no character at all.
    """
    if _ASCII.fullmatch(text):
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """As `printable`, of a text that may have lines."""
    return "\n".join(map(printable, text.split("\n")))
