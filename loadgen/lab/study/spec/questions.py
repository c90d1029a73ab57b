"""Questions with known answers, and the rule by which a reply is right.

The rule is exact match as SQuAD's (Rajpurkar et al., EMNLP 2016): case, punctuation and spaces do
not count. Three things differ. Of a reply only its last line counts, after any thinking, and it may
begin with other words ("The answer is Paris."), but must end with the answer. Ideographs are
compared one by one, as CMRC 2018 does it (Cui et al., EMNLP 2019), since nothing separates words of
Chinese. And articles are kept, because the letter A may be an answer. Numbers keep their sign and
their point, and lose the commas between thousands.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from loadgen.errors import BadInput

OWN = Path(__file__).with_name("questions.jsonl")
MAX_LINES = 10_000
MAX_BYTES = 16 << 20
REMEDY = (
    'write {"question": "2 + 3?", "answer": 5} or {"question": ..., "answers": [...]}, a line each'
)
_IDEOGRAPH = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # and kana, which no spaces separate either
_LETTER = rf"[^\W_{_IDEOGRAPH}]"
_WORD = re.compile(rf"(?<!{_LETTER})-?\d+(?:\.\d+)?(?!{_LETTER})|[{_IDEOGRAPH}]|{_LETTER}+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MINUS = str.maketrans({"\N{MINUS SIGN}": "-"})


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its right answers.

    Attributes:
        text: The question.
        answers: Right answers; a reply must have one of them.
    """

    text: str
    answers: tuple[str, ...]

    def right(self, reply: str) -> bool:
        """Return whether a reply is right."""
        words = _last_words(reply)
        return any(words[-len(answer) :] == answer for answer in map(_last_words, self.answers))


def read(path: str | Path) -> tuple[Question, ...]:
    """Read questions from JSON lines with `question` and `answer`, or `answers`, each of which is
    right.

    Other keys are ignored. Only the last line of an answer counts, as in a reply.

    Raises:
        BadInput: The file cannot be read, or a line is not a question; the message names file and
            line.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(
            str(path), f"cannot be read ({error.strerror})", "name a file of questions"
        ) from error
    lines = content.splitlines()
    if len(content) > MAX_BYTES or len(lines) > MAX_LINES:
        raise BadInput(
            str(path),
            f"is more than {MAX_LINES:,} lines or {MAX_BYTES >> 20} MiB",
            "take a part of it",
        )
    questions = tuple(
        _question(f"{path}:{number}", line) for number, line in enumerate(lines, 1) if line.strip()
    )
    if not questions:
        raise BadInput(str(path), "has no question", REMEDY)
    return questions


def sha256(questions: Sequence[Question]) -> str:
    """Return the SHA-256 of questions and their order, in hexadecimal."""
    return hashlib.sha256(
        orjson.dumps([[question.text, question.answers] for question in questions])
    ).hexdigest()


def _question(where: str, line: bytes) -> Question:
    try:
        data = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadInput(where, f"is not JSON ({error})", REMEDY) from error
    if (
        not isinstance(data, dict)
        or not isinstance(text := data.get("question"), str)
        or not text.strip()
    ):
        raise BadInput(where, "has no question", REMEDY)
    if ("answer" in data) == ("answers" in data):
        raise BadInput(where, "needs one of answer and answers", REMEDY)
    values = data["answers"] if "answers" in data else [data["answer"]]
    answers = []
    for value in values if isinstance(values, list) else ():
        is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
        answers.append(str(value) if is_text else "")
    if not answers or not all(map(_last_words, answers)):
        raise BadInput(where, "has an answer without a letter or a digit, or none", REMEDY)
    return Question(text, tuple(answers))


def _last_words(text: str) -> list[str]:
    """Return the words of the last non-empty line after any thinking; none if the thinking was
    cut off.
    """
    reply = text.rpartition("</think>")[2]
    if "<think>" in reply:
        return []
    for line in reversed(reply.splitlines()):
        plain = unicodedata.normalize("NFKC", line).casefold().translate(_MINUS)
        words: list[str] = _WORD.findall(_THOUSANDS.sub("", plain))
        if words:
            return words
    return []
