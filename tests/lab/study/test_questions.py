"""Questions with known answers: which replies are right, and which files can be used."""

from pathlib import Path

import pytest

from loadgen.errors import BadInput
from loadgen.lab.study.spec import questions
from loadgen.lab.study.spec.questions import OWN, Question, read, sha256


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Paris", "Paris"),
        ("**paris**.", "Paris"),
        ("The capital of France is Paris!", "Paris"),
        ("17 + 25:\n\n42\n\n", "42"),
        ("<think>It may be 41.\n</think>\n\n42", "42"),
        ("It is 1,234,567.", "1234567"),
        ("x = \N{MINUS SIGN}8", "-8"),
        ("10-8", "8"),
        ("1.25.", "1.25"),
        ("$42", "42"),
        ("16:25", "16:25"),
        ("Ｈ₂Ｏ", "H2O"),
        ("答案是北京。", "北京"),
        ("还剩８元。", "8元"),
        ("A", "a"),
        ("42", "6 * 7 = 42\n#### 42"),
    ],
)
def test_a_reply_is_right_whose_last_line_ends_with_the_answer(reply: str, answer: str) -> None:
    assert Question("?", (answer,)).right(reply)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("", "42"),
        ("142", "42"),
        ("42.5", "42"),
        ("-42", "42"),
        ("4.2", "42"),
        ("42 of them", "42"),
        ("42\nor 43", "42"),
        ("<think>42", "42"),
        ("<think>42</think>", "42"),
        ("comparis", "Paris"),
        ("banana", "a"),
        ("北京人", "北京"),
        ("...", "42"),
    ],
)
def test_any_other_is_wrong(reply: str, answer: str) -> None:
    assert not Question("?", (answer,)).right(reply)


def test_any_listed_answer_is_right() -> None:
    question = Question("?", ("6", "six"))
    assert question.right("It is six.")
    assert question.right("6")
    assert not question.right("seven")


def test_our_own_are_sixty_different_questions_that_their_answers_answer() -> None:
    own = read(OWN)
    assert len({question.text for question in own}) == len(own) == 60
    for question in own:
        assert all(question.right(answer) for answer in question.answers), question
        assert not question.right("I do not know."), question


def test_a_file_has_a_question_a_line(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(
        '{"question": "2 + 3?", "answer": 5, "level": 1}\n\n{"question": "2 * 3?", "answers": '
        '["6", "six"]}\n'
    )
    assert read(path) == (Question("2 + 3?", ("5",)), Question("2 * 3?", ("6", "six")))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ": has no question;"),
        ("2 + 3?", ":1: is not JSON ("),
        ("[]", ":1: has no question;"),
        ('{"question": " ", "answer": 5}', ":1: has no question;"),
        ('\n{"question": "2 + 3?"}', ":2: needs one of answer and answers;"),
        (
            '{"question": "2 + 3?", "answer": 5, "answers": [5]}',
            ":1: needs one of answer and answers;",
        ),
        (
            '{"question": "2 + 3?", "answer": "..."}',
            ":1: has an answer without a letter or a digit, or none;",
        ),
        ('{"question": "2 + 3?", "answer": true}', ":1: has an answer without"),
        ('{"question": "2 + 3?", "answer": null}', ":1: has an answer without"),
        ('{"question": "2 + 3?", "answers": []}', ":1: has an answer without"),
        ('{"question": "2 + 3?", "answers": "five"}', ":1: has an answer without"),
    ],
)
def test_invalid_question_is_refused_in_one_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(text)
    with pytest.raises(BadInput) as refused:
        read(path)
    assert str(refused.value).startswith(f"{path}{problem}")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_or_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match="No such file"):
        read(tmp_path / "none.jsonl")
    monkeypatch.setattr(questions, "MAX_LINES", 3)
    with pytest.raises(BadInput, match="more than 3 lines"):
        read(OWN)


def test_questions_are_known_by_what_they_ask_and_by_their_answers() -> None:
    one = [Question("2 + 3?", ("5",))]
    assert sha256(one) == sha256(list(one))
    assert (
        len(
            {
                sha256(each)
                for each in (
                    one,
                    one * 2,
                    [Question("2 + 3?", ("6",))],
                    [Question("3 + 2?", ("5",))],
                )
            }
        )
        == 4
    )
