"""The accuracy gate: rejects an arm that answers significantly fewer questions right than the
baseline.

`answers` asks a running server the questions, whose answers are known.
"""

import asyncio
import itertools
import time
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from loadgen.config.settings import RunSettings
from loadgen.errors import Unreachable
from loadgen.lab.study.execute.trial import Answers, Trial, TrialRequest, usable_answers
from loadgen.lab.study.plan.plan import NOISE
from loadgen.lab.study.spec.arm_spec import ArmSpec, baseline
from loadgen.lab.study.spec.questions import Question, sha256
from loadgen.lab.study.spec.study import Study
from loadgen.stats import hypothesis_tests
from loadgen.util import http_client
from loadgen.util.number_format import percent
from loadgen.util.redaction import Redaction
from loadgen.workload import endpoints
from loadgen.workload.chat_template.template_tokens import template_options
from loadgen.workload.target import Target

TOGETHER = 8  # questions in flight
ANSWER_TOKENS = 2048  # at most, thinking included
CHAT = "openai-chat"
ANSWER_S = 120.0
# Share of the questions that may get no answer; those that failed count as wrong, those that were
# late are not compared.
MAX_FAILED = 0.05
NOT_JUDGED = "the answers are not judged"
MAX_EXAMPLES = 5  # of wrong answers that are kept
MAX_CHARACTERS = 200  # that are kept of each
PROMPT = "{}\n\nGive the answer alone on the last line."
# Knobs that only distribute and schedule the same work; any other change may change what is
# computed.
EXACT = {
    "served_name",
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "attention_data_parallel",
    "expert_parallel",
    "context_len",
    "max_batched_tokens",
    "max_seqs",
    "chunked_prefill",
    "prefix_cache",
    "memory_fraction",
}


def lossy(arm: ArmSpec, base: ArmSpec) -> bool:
    """Return whether an arm may answer differently from another.

    That is: engine, model or a knob that is not EXACT differ, or flags and variables of the engine,
    whose effect is unknown.
    """
    if any(getattr(arm, part) != getattr(base, part) for part in ("engine", "model", "raw", "env")):
        return True
    return any(
        arm.knobs.get(name) != base.knobs.get(name) for name in {*arm.knobs, *base.knobs} - EXACT
    )


def asks_questions(
    request: TrialRequest, arm: ArmSpec, study: Study, trials: Iterable[Trial]
) -> bool:
    """Return whether a start asks the questions: once for the baseline, and once in each step for a
    lossy arm; again if the answers did not come in time.

    Args:
        request: The start.
        arm: Its arm.
        study: The study.
        trials: All trials so far.
    """
    if study.objective.accuracy is None or not (
        request.step == NOISE or lossy(arm, baseline(study))
    ):
        return False
    place = request.step, request.arm
    earlier = (trial for trial in trials if (trial.request.step, trial.request.arm) == place)
    answers = usable_answers(earlier)
    return answers is None or answers.unjudged


class AccuracyGate:
    """Compares the answers of arms with the baseline's.

    An arm is rejected if it has lost more than the study allows, and if the loss is significant: by
    McNemar's test on the questions that only one of the two answered right (Psychometrika 12,
    1947), in its exact form, one-sided, at the confidence of the study's decisions.

    Args:
        study: The study.
        base_answers: Answers of the baseline; None if it was not asked.
    """

    def __init__(self, study: Study, base_answers: Answers | None) -> None:
        self._accuracy = study.objective.accuracy
        self._base = baseline(study)
        self._base_answers = base_answers
        self._chance = 1 - study.decision.confidence

    def baseline_unusable_reason(self, answers: Answers | None) -> str:
        """Return why no arm could be judged by these answers of the baseline; empty if arms can be
        judged.

        Args:
            answers: Answers of the baseline; None if it was not asked.
        """
        if self._accuracy is None or answers is None:
            return ""
        remedy = "give questions that it answers, or leave accuracy out"
        if answers.trouble:
            return f"{answers.trouble}; {remedy}"
        right = answers.right.count(True)
        count = len(answers.right)
        few = right < hypothesis_tests.min_significant_losses(self._chance)
        return (
            f"it answers {right} of {count} questions right, too few to detect a loss; {remedy}"
            if few
            else ""
        )

    def leaves_open(self, arm: ArmSpec, trials: Iterable[Trial]) -> bool:
        """Return whether the answers of an arm did not come in time to judge it.

        Args:
            arm: The arm.
            trials: Its starts.
        """
        if self._accuracy is None or not lossy(arm, self._base):
            return False
        answers = usable_answers(trials)
        return answers is not None and answers.unjudged

    def judge(self, arm: ArmSpec, trials: Iterable[Trial]) -> tuple[bool, str]:
        """Judge the answers of an arm.

        Args:
            arm: The arm.
            trials: Its starts; the first one with answers counts.

        Returns:
            Whether the arm is rejected, and a remark about its answers; empty if it cannot have
            changed them.
        """
        if self._accuracy is None or not lossy(arm, self._base):
            return False, ""
        answers = usable_answers(trials)
        if answers is not None and answers.unjudged:
            return False, f"{NOT_JUDGED}: {answers.trouble}"
        if answers is None or answers.trouble:
            return (
                True,
                "it did not answer the questions" if answers is None else f"it: {answers.trouble}",
            )
        # Without usable answers of the baseline no arm is started.
        assert self._base_answers is not None
        base = self._base_answers
        if answers.questions != base.questions:
            return True, "its questions differ from the baseline's"
        max_loss = self._accuracy.max_loss
        late = {*base.late, *answers.late}
        compared = enumerate(zip(base.right, answers.right, strict=True))
        pairs = [pair for number, pair in compared if number not in late]
        count = len(pairs)
        lost = pairs.count((True, False))
        won = pairs.count((False, True))
        counts = (
            f"answers {sum(ours for _, ours in pairs)} of {count} questions right, the baseline "
            f"{sum(before for before, _ in pairs)}"
        )
        loss = (lost - won) / count
        chance = hypothesis_tests.mcnemar_one_sided_p(lost, won)
        if loss > max_loss and chance <= self._chance:
            p_value = f"chance alone loses as much in {percent(chance, 1)} of cases"
            return (
                True,
                f"{counts}: a loss of {percent(loss, 1)}, at most {percent(max_loss, 1)} is "
                f"allowed; {p_value}",
            )
        undetected = max(max_loss, hypothesis_tests.min_significant_losses(self._chance) / count)
        return False, f"{counts}; a loss below {percent(undetected, 1)} may go undetected"


async def answers(settings: RunSettings, model: str, questions: Sequence[Question]) -> Answers:
    """Ask a running server over its chat endpoint, with greedy sampling; of several servers the
    first.

    Settings of sampling and of lengths are ignored, so that all arms are asked in the same way.
    Options of the chat template (`chat_template_kwargs` in `extra_body`) are kept.

    Args:
        settings: Settings of a run of any workload, with the server.
        model: Name of the model in requests.
        questions: The questions.
    """
    path = settings.endpoint if endpoints.name_of(settings) == CHAT else None
    chat = settings.replace(backend=CHAT, endpoint=path)
    target = Target.from_settings(chat, model)
    slots = asyncio.Semaphore(TOGETHER)
    failures: list[str] = []
    late: dict[int, str] = {}
    max_failed = int(MAX_FAILED * len(questions))

    async def ask(number: int, question: Question) -> str | None:
        async with slots:
            if len(failures) + len(late) > max_failed:  # the answers are unusable already
                return None
            since_s = time.monotonic()
            try:
                return await _reply(target, question)
            except Unreachable as error:
                if time.monotonic() - since_s < ANSWER_S:
                    failures.append(str(error))
                else:
                    late[number] = str(error)
                return None

    replies = await asyncio.gather(*itertools.starmap(ask, enumerate(questions)))
    right = tuple(
        reply is not None and question.right(reply)
        for question, reply in zip(questions, replies, strict=True)
    )
    public = Redaction(target.headers)
    wrong = [
        {
            "question": question.text,
            "answer": question.answers[0],
            "said": public(reply)[-MAX_CHARACTERS:],
        }
        for question, reply, is_right in zip(questions, replies, right, strict=True)
        if reply is not None and not is_right
    ]
    trouble = ""
    unanswered = [*failures, *late.values()]
    if len(unanswered) > max_failed:
        trouble = (
            f"of {len(questions)} questions {len(unanswered)} or more got no answer: "
            f"{public(unanswered[0])}"
        )
    if len(failures) > max_failed:
        late = {}  # the server failed, however slow it was
    return Answers(
        sha256(questions), right, tuple(wrong[:MAX_EXAMPLES]), trouble, tuple(sorted(late))
    )


async def _reply(target: Target, question: Question) -> str:
    """Return the server's reply; empty if it has only thinking.

    Raises:
        Unreachable: No reply, or not one of a chat.
    """
    body = {
        "model": target.model,
        "messages": [{"role": "user", "content": PROMPT.format(question.text)}],
        "max_completion_tokens": ANSWER_TOKENS,
        "temperature": 0,
        "seed": 0,
    }
    request = orjson.dumps(body | template_options(target.fields))
    reply = await http_client.send_json(
        target.url,
        request,
        headers=target.headers | target.signature(request),
        route=target.route,
        timeout_s=ANSWER_S,
    )
    data: Any = reply.json() if reply.status == 200 else None
    try:
        content = data["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        text = " ".join(reply.body[:MAX_CHARACTERS].decode(errors="replace").split())
        raise Unreachable(f"{target.url} answers {reply.status}: {text}") from None
    return content if isinstance(content, str) else ""
