"""A command as people have it: its words in a shell, with the variables in it unexpanded.

Variables, arithmetic and substitutions stay as they are, so that the translated command can stand
where the command stood, in a script or in a loop.
"""

import re

from loadgen.errors import BadInput

# Where a command ends: what follows belongs to the shell.
ENDS = ("|", "||", "&&", "&", ";", "\n", ")", "done")
_OPERATOR = re.compile(r"\|\||&&|[0-9&]?>>?(?:&[0-9-])?|[|;&\n)]")
_PLACEHOLDER = re.compile(r"<[^<>\s]+>")
_ARRAY = re.compile(r"\$\{[A-Za-z_]\w*\[[@*]\]\}")
_EXPANSION = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?]|\{|\()|`")
_PLAIN = re.compile(r"[\w@%+=:,./~-]+")
_CLOSING = {"{": "}", "(": ")"}


class Operator(str):
    """A word that the shell reads itself, such as a pipe."""


def split(text: str) -> list[str]:
    """Split a command, or a script with several, into words; operators of the shell are Operators.

    Raises:
        BadInput: A quote or a bracket is not closed.
    """
    words: list[str] = []
    word, inside, at = "", False, 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            escaped = text[at + 1 : at + 2].replace("\n", "")
            word, inside, at = word + escaped, inside or bool(escaped), at + 2
        elif char in "'\"":
            part, at = _quoted(text, at)
            word, inside = word + part, True
        elif _EXPANSION.match(text, at):
            end = _expansion_end(text, at)
            word, inside, at = word + _compact(text[at:end]), True, end
        elif placeholder := _PLACEHOLDER.match(text, at):
            word, inside, at = word + placeholder[0], True, placeholder.end()
        elif char.isspace() and char != "\n":
            if inside:
                words.append(word)
            word, inside, at = "", False, at + 1
        elif char == "#" and not inside:
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
        elif (operator := _OPERATOR.match(text, at)) and not (
            operator[0][0].isdigit() and (inside or ">" not in operator[0])
        ):
            words += [word] if inside else []
            words.append(Operator(operator[0]))
            word, inside, at = "", False, operator.end()
        else:
            word, inside, at = word + char, True, at + 1
    return [*words, word] if inside else words


def quoted(word: str) -> str:
    """Write a word as a shell reads it: its variables are expanded, all else is literal."""
    if _PLAIN.fullmatch(word):
        return word
    if not _EXPANSION.search(word):
        return "'" + word.replace("'", "'\\''") + "'"
    return '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'


def is_variable(word: str) -> bool:
    """Whether a word is one variable, or a placeholder, and nothing else."""
    if word.startswith(("$", "`")):
        return _expansion_end(word, 0) == len(word)
    return bool(re.fullmatch(r"<[^<>]+>|\{[^{}]+\}|[A-Z][A-Z0-9_]+", word))


def number(word: str) -> float | None:
    """Return the number that a word is; None for a variable, a placeholder, or another word."""
    try:
        return float(word)
    except ValueError:
        return None


def has_variable(word: str) -> bool:
    """Whether a word has a variable in it."""
    return bool(_EXPANSION.search(word))


def is_array(word: str) -> bool:
    """Whether a word stands for several words, such as all flags in an array of the shell."""
    return bool(_ARRAY.search(word))


def product(*factors: str) -> str:
    """Multiply numbers and variables: $((N*5)) if one of them is a variable."""
    result = 1.0
    for factor in factors:
        value = number(factor)
        if value is None:
            names = [re.sub(r"^\$\{?(\w+)\}?$|^\$\(\((.*)\)\)$", r"\1\2", text) for text in factors]
            return f"$(({'*'.join(names)}))"
        result *= value
    return f"{result:.0f}"


def _quoted(text: str, at: int) -> tuple[str, int]:
    """Return the text in quotes that begin at a place, and the place behind them."""
    mark, part, at = text[at], "", at + 1
    while at < len(text) and text[at] != mark:
        if mark == '"' and text[at] == "\\" and text[at + 1 : at + 2] in ('"', "\\", "`", "\n"):
            part += text[at + 1].replace("\n", "")
            at += 2
        elif mark == '"' and _EXPANSION.match(text, at):
            end = _expansion_end(text, at)
            part, at = part + _compact(text[at:end]), end
        else:
            part, at = part + text[at], at + 1
    if at >= len(text):
        raise BadInput("command", f"a quote {mark} is not closed", "give the whole command")
    return part, at + 1


def _expansion_end(text: str, at: int) -> int:
    """Return the place behind the variable, arithmetic or substitution that begins at a place."""
    begin = _EXPANSION.match(text, at)
    if begin is None:
        return at
    opening = begin[0][-1]
    if opening == "`":
        end = text.find("`", at + 1)
        if end < 0:
            raise BadInput("command", "a ` is not closed", "give the whole command")
        return end + 1
    if opening not in _CLOSING:
        return begin.end()
    depth, place = 1, begin.end()
    while depth and place < len(text):
        depth += (text[place] == opening) - (text[place] == _CLOSING[opening])
        place += 1
    if depth:
        raise BadInput("command", f"a {opening} is not closed", "give the whole command")
    return place


def _compact(expansion: str) -> str:
    """Write arithmetic without spaces."""
    return re.sub(r"\s+", "", expansion) if expansion.startswith("$((") else expansion
