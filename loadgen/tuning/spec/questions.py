"""Questions with known answers, and when a reply answers one right.

The rule is exact match as SQuAD's (Rajpurkar et al., EMNLP 2016): case, punctuation and spaces do not count. Three
things differ. Of a reply only its last line counts, after any thinking, and it may begin with other words ("The answer
is Paris."), but must end with the answer. Ideographs are compared one by one, as CMRC 2018 does it (Cui et al., EMNLP
2019), since nothing separates words of Chinese. And articles are kept, because the letter A may be an answer. Numbers
keep their sign and their point, and lose the commas between thousands.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from loadgen.errors import BadInput

OWN = Path(__file__).with_name("questions.jsonl")
MOST, MOST_BYTES = 10_000, 16 << 20
REMEDY = 'write {"question": "2 + 3?", "answer": 5} or {"question": ..., "answers": [...]}, a line each'
_IDEOGRAPH = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # and kana, which no spaces separate either
_LETTER = rf"[^\W_{_IDEOGRAPH}]"
_WORD = re.compile(rf"(?<!{_LETTER})-?\d+(?:\.\d+)?(?!{_LETTER})|[{_IDEOGRAPH}]|{_LETTER}+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MINUS = str.maketrans({"\N{MINUS SIGN}": "-"})


@dataclass(frozen=True, slots=True)
class Question:
    """A question.

    Attributes:
        text: As it is asked.
        answers: Each of them is right.
    """

    text: str
    answers: tuple[str, ...]

    def right(self, reply: str) -> bool:
        """Whether a reply answers it."""
        said = _last_words(reply)
        return any(said[-len(answer) :] == answer for answer in map(_last_words, self.answers))


def read(path: str | Path) -> tuple[Question, ...]:
    """Read questions: JSON lines with `question` and `answer`, or `answers` of which each is right; other keys are kept
    out. Of an answer of several lines the last one counts, as in a reply.

    Raises:
        BadInput: The file cannot be read, or a line is no question; one line that names file and line.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(str(path), f"cannot be read ({error.strerror})", "name a file of questions") from error
    lines = content.splitlines()
    if len(content) > MOST_BYTES or len(lines) > MOST:
        raise BadInput(str(path), f"is more than {MOST:,} lines or {MOST_BYTES >> 20} MiB", "take a part of it")
    found = tuple(_question(f"{path}:{number}", line) for number, line in enumerate(lines, 1) if line.strip())
    if not found:
        raise BadInput(str(path), "has no question", REMEDY)
    return found


def sha256(questions: Sequence[Question]) -> str:
    """The same for the same questions in the same order, in hexadecimal."""
    return hashlib.sha256(orjson.dumps([[each.text, each.answers] for each in questions])).hexdigest()


def _question(where: str, line: bytes) -> Question:
    try:
        told = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadInput(where, f"is no JSON ({error})", REMEDY) from error
    if not isinstance(told, dict) or not isinstance(text := told.get("question"), str) or not text.strip():
        raise BadInput(where, "has no question", REMEDY)
    if ("answer" in told) == ("answers" in told):
        raise BadInput(where, "needs one of answer and answers", REMEDY)
    given = told["answers"] if "answers" in told else [told["answer"]]
    answers = [_answer(each) for each in given] if isinstance(given, list) else []
    if not answers or not all(map(_last_words, answers)):
        raise BadInput(where, "has an answer without a letter or a digit, or none", REMEDY)
    return Question(text, tuple(answers))


def _answer(given: Any) -> str:
    """A word or a number as text; nothing of anything else."""
    return str(given) if isinstance(given, str | int | float) and not isinstance(given, bool) else ""


def _last_words(text: str) -> list[str]:
    """The words of the last line that has any, after any thinking; none of a thought that was cut off."""
    said = text.rpartition("</think>")[2]
    if "<think>" in said:
        return []
    return next((words for line in reversed(said.splitlines()) if (words := _words(line))), [])


def _words(line: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", line).casefold().translate(_MINUS)
    return _WORD.findall(_THOUSANDS.sub("", plain))
