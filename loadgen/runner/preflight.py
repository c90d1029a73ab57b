"""`Preflight`: one short request before the load, which finds out what a server takes.

It finds the API where none is named, and the fields of a body that the server refuses, so that the
load does without them. It stops a run whose every request would be refused, in the server's words.
"""

import asyncio
import math
import re
import time
from collections.abc import Sequence
from typing import Any, NoReturn, Self

import orjson
from msgspec import Struct

from loadgen.config.settings import RunSettings
from loadgen.config.target import (
    AIOHTTP,
    EXTENSIONS,
    IGNORE_EOS,
    MAX_COMPLETION_TOKENS,
    MAX_TOKENS,
    OPTIONAL,
)
from loadgen.errors import BadInput, Unreachable, setting
from loadgen.metrics.progress import OnProgress, Progress
from loadgen.util import http_client
from loadgen.util.http_client import Reply
from loadgen.util.redaction import Redaction, secrets
from loadgen.workload.endpoints.generation import COMPLETIONS, RESPONSES
from loadgen.workload.endpoints.pooling import RERANK
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target, base_url

CHAT = "openai-chat"
TEXT = "Hello"
LEAST_OF_RESPONSES = 16  # tokens; OpenAI refuses a lower limit
QUIET_S = 5.0  # until a user is told what is waited for
ANSWER_S = 60.0  # for the answer, unless a timeout of the run is shorter
MAX_WORDS, MAX_PAGE = 160, 2000  # characters of a server's words that are shown, and read
END_TOKENS = 1  # that some engines count beyond a limit
MAX_REQUESTS = 4  # to one API: as it is, without extensions, without all, and with the other limit
ANYWAY = "--no-preflight sends the load all the same"
IDENTITY = "identity"  # a content coding that changes nothing
USUAL = ("invalid_request_error", "None")  # types of errors that tell nothing
TAG = re.compile(r"<(style|script).*?</\1>|<[^>]*>", re.S)

NO_KEY, REFUSED, NO_PATH = (401, 403), (400, 404, 405, 415, 422, 501), (404, 405, 501)
NO_MONEY = re.compile(r"insufficient[_ ](quota|balance|credits?)|exceeded your current quota", re.I)
NO_MODEL = re.compile(
    r"model_not_found|deployment ?not ?found|model_?not_?exist"
    r"|\b(model|deployment)\b[^.]{0,120}\b(not exist|not found|unknown|invalid|not available)"
    r"|\b(unknown|invalid|no such|not a valid) model|^not_found_error: model:",
    re.I,
)
# Said by servers whose completions have not this model, or that have none.
NO_COMPLETIONS = re.compile(r"\bchat\b|\bcompletions?\b", re.I)
OF_CHAT = re.compile(r"\bchat\b|\bcompletion operation\b", re.I)
# The parameters were taken: one token was not enough for a model that thinks.
TOO_SHORT = re.compile(r"max_tokens or model output limit was reached", re.I)


class Refusal(Struct, frozen=True):
    """An answer that is no success.

    Attributes:
        status: Its HTTP status, or that of the error in a stream; 0: there was no answer.
        words: What the server says, on one line, without secrets.
    """

    status: int
    words: str

    @classmethod
    def of(cls, reply: Reply, redacted: Redaction) -> Self | None:
        """Read an answer; None if it is a success."""
        status, error = reply.status, error_of(reply)
        if 200 <= status < 300:
            if error is None:
                return None
            code = error.get("code") if isinstance(error, dict) else None
            status = code if isinstance(code, int) and code >= 400 else 500
        text = words_of(error) or reply.body[:MAX_PAGE].decode(errors="replace")
        text = redacted(TAG.sub(" ", text)) if text.lstrip().startswith("<") else redacted(text)
        if status == 400 and TOO_SHORT.search(text):
            return None
        return cls(status, " ".join(text.split())[:MAX_PAGE])

    @property
    def lasts(self) -> bool:
        """Whether every request would be refused, now and later."""
        return self.status in (*NO_KEY, *REFUSED) or self.is_of_account

    def named(self, names: Sequence[str]) -> list[str]:
        """Return those of some names that the server's words have."""
        return [name for name in names if re.search(rf"\b{name}\b", self.words)]

    def __str__(self) -> str:
        shown = self.words
        if len(shown) > MAX_WORDS:
            shown = f"{shown[:MAX_WORDS]}..."
        return f"{self.status or 'no answer'}: {shown}" if shown else f"{self.status}"

    @property
    def has_no_completions(self) -> bool:
        """Whether it may be because the server has completions not at all, or not of the model."""
        if self.status in NO_PATH:
            return not self.is_of_model or bool(OF_CHAT.search(self.words))
        return self.status == 400 and bool(NO_COMPLETIONS.search(self.words))

    @property
    def is_of_fields(self) -> bool:
        """Whether it may be because of the fields of the body."""
        is_told = self.status not in NO_PATH or "parameter" in self.words
        return (
            is_told and self.status not in NO_KEY and not (self.is_of_account or self.is_of_model)
        )

    @property
    def is_of_model(self) -> bool:
        """Whether the server says that it does not have the model."""
        return self.status in REFUSED and bool(NO_MODEL.search(self.words))

    @property
    def is_of_account(self) -> bool:
        """Whether the account has no quota or money left."""
        return self.status == 402 or (
            self.status in (403, 429) and bool(NO_MONEY.search(self.words))
        )


class Preflight:
    """The short requests to one server, one for each model that requests name.

    Args:
        settings: Resolved, of one server.
        model: The model's name in requests.
        listed: The models that the server lists.
        on_progress: Called while a server that is starting is waited for.

    Attributes:
        settings: Those of the run, with the API and without the fields that the server refuses.
        answered: Whether a request succeeded.
        is_hosted: Whether the server refuses what engines take, so that it has none of their
            metrics.
        changes: What was changed and why, each on one line.
        requests: How many requests were sent.
    """

    def __init__(
        self, settings: RunSettings, model: str, listed: Sequence[str], on_progress: OnProgress
    ) -> None:
        self.settings = settings
        self.answered = False
        self.is_hosted = False
        self.changes: list[str] = []
        self.requests = 0
        self._model = model
        self._listed = listed
        self._on_progress = on_progress
        self._base = base_url(settings)
        self._begun = time.monotonic()

    @property
    def about(self) -> dict[str, Any]:
        """Its facts for the result, as JSON; nothing without a request."""
        facts = {
            "requests": self.requests,
            "answered": self.answered,
            "omitted": [*self.settings.omit],
            "changes": self.changes,
        }
        return {"preflight": facts} if self.requests else {}

    async def ask(self, *, chooses: bool) -> None:
        """Send the requests.

        Args:
            chooses: Whether no API was named, so that chat replaces completions that are missing.

        Raises:
            BadInput: Every request of the run would be refused.
            Unreachable: No request succeeded in the time of the ready check.
        """
        classes = self._targets() if self.settings.classes else self._targets()[:1]
        for number in {each.model: number for number, each in enumerate(classes)}.values():
            await self._try(number, chooses=chooses)
            chooses = False

    def _targets(self) -> Sequence[Target]:
        return Target.from_settings(self.settings, self._model).each_class

    async def _try(self, number: int, *, chooses: bool) -> None:
        """Send requests as the class of this number until one succeeds, or nothing is left to
        change.
        """
        for _ in range(MAX_REQUESTS):
            target = self._targets()[number]
            body = short_body(target)
            if body is None:
                return
            answer = await self._answer(target, body)
            if not isinstance(answer, Refusal):
                self.answered = True
                self._take_aiohttp(answer)
                self._limit_by_max_tokens(answer, body)
                return
            if not answer.lasts:
                self.changes.append(f"the load is sent although the test request failed: {answer}")
                return
            if chooses and target.api is COMPLETIONS and answer.has_no_completions:
                chooses = False
                self._take_chat(answer, number)
            elif not (answer.is_of_fields and self._leave_out(answer, body)):
                break
        assert isinstance(answer, Refusal)
        self._stop(answer, target)

    async def _answer(self, target: Target, body: dict[str, Any]) -> Reply | Refusal:
        """Send a body, again and again while the server is starting and the ready check lasts.

        Raises:
            Unreachable: It did not succeed in that time.
        """
        limit_s = self.settings.ready_check_timeout_sec
        limits_s = (self.settings.timeout, self.settings.first_token_timeout)
        redacted = Redaction(target.headers)
        while True:
            is_over = time.monotonic() - self._begun >= limit_s
            self.requests += 1
            told = asyncio.get_running_loop().call_later(QUIET_S, self._tell, target.url)
            try:
                data = orjson.dumps(body)
                reply = await http_client.send_json(
                    target.url,
                    data,
                    headers=target.headers | target.signature(data),
                    route=target.route,
                    timeout_s=min(ANSWER_S, *(each_s or math.inf for each_s in limits_s)),
                )
                refusal = Refusal.of(reply, redacted)
            except Unreachable as error:
                refusal = Refusal(0, redacted(str(error)))
            finally:
                told.cancel()
            if refusal is None:
                return reply
            if refusal.lasts or not limit_s:
                return refusal
            if is_over:
                problem = f"no success in {limit_s:g} s at {target.url}: {refusal}"
                raise Unreachable(f"{setting.ready_check_timeout_sec}: {problem}")
            elapsed_s = time.monotonic() - self._begun
            self._on_progress(Progress("waiting", elapsed_s, note=f"{target.url}: {refusal}"))
            await asyncio.sleep(min(1.0, limit_s / 10))

    def _tell(self, url: str) -> None:
        """Say that the answer to a request takes its time."""
        note = f"{url} has not answered the test request yet"
        self._on_progress(Progress("waiting", time.monotonic() - self._begun, note=note))

    def _take_aiohttp(self, reply: Reply) -> None:
        """Have aiohttp read the answers of a server that compresses them."""
        coding = reply.headers.get("Content-Encoding", IDENTITY)
        if coding != IDENTITY and self.settings.transport != AIOHTTP:
            self.settings = self.settings.replace(transport=AIOHTTP)
            self.changes.append(
                f"--transport aiohttp: the server compresses its answers ({coding})"
            )

    def _take_chat(self, refusal: Refusal, number: int) -> None:
        """Take chat in place of completions: with OpenAI's fields if the server speaks of chat,
        else with those alone that every server takes.
        """
        self.settings = self.settings.replace(backend=CHAT)
        self.is_hosted = True
        names: list[str] = []
        if self.settings.adapts:
            knows_chat = OF_CHAT.search(refusal.words)
            body = short_body(self._targets()[number]) or {}
            names = self._omit(body, EXTENSIONS if knows_chat else OPTIONAL)
        without = f" without {', '.join(names)}" if names else ""
        self.changes.append(f"chat completions{without}: completions are refused ({refusal})")

    def _leave_out(self, refusal: Refusal, body: dict[str, Any]) -> bool:
        """Leave out the fields that the server may have refused; returns whether there are any."""
        settings = self.settings
        if settings.continuous_usage and not refusal.named(OPTIONAL):
            self.settings = settings.replace(continuous_usage=False)
            self.changes.append(f"no usage with every event ({refusal})")
            return True
        if not settings.adapts:
            return False
        if MAX_COMPLETION_TOKENS in settings.omit and refusal.named([MAX_COMPLETION_TOKENS]):
            kept = tuple(name for name in settings.omit if name != MAX_COMPLETION_TOKENS)
            self.settings = settings.replace(omit=kept)
            self.changes.append(f"{MAX_COMPLETION_TOKENS} after all ({refusal})")
            return True
        named = refusal.named(sorted(body.keys() & {*OPTIONAL}))
        names = self._omit(body, (*EXTENSIONS, *named) if named else OPTIONAL)
        if names:
            self.is_hosted = True
            self.changes.append(f"without {', '.join(names)} ({refusal})")
        return bool(names)

    def _limit_by_max_tokens(self, reply: Reply, body: dict[str, Any]) -> None:
        """Use max_tokens where the server does not look at max_completion_tokens."""
        counted, limit = completion_tokens(reply), body.get(MAX_COMPLETION_TOKENS)
        if self.settings.adapts and limit is not None and counted > limit + END_TOKENS:
            self._omit(body, [MAX_COMPLETION_TOKENS])
            self.changes.append(
                f"{MAX_TOKENS} in place of {MAX_COMPLETION_TOKENS} ({counted} tokens for {limit})"
            )

    def _omit(self, body: dict[str, Any], names: Sequence[str]) -> list[str]:
        """Omit those of the names that a body has from all requests, and return them."""
        omitted = [name for name in OPTIONAL if name in names and name in body]
        kept = {*self.settings.omit, *omitted}
        changes: dict[str, Any] = {"omit": tuple(name for name in OPTIONAL if name in kept)}
        if IGNORE_EOS in omitted:
            changes[IGNORE_EOS] = False
        self.settings = self.settings.replace(**changes)
        return omitted

    def _stop(self, refusal: Refusal, target: Target) -> NoReturn:
        """Raise that the run would fail, by the flag that can change it."""
        problem = f"the server at {self._base} answers {refusal}"
        if refusal.status in NO_KEY and not refusal.is_of_account:
            raise_no_key(self.settings, refusal, target.headers)
        if refusal.is_of_account:
            raise BadInput(setting.api_key, problem, f"see the plan of its account; {ANYWAY}")
        if refusal.is_of_model:
            field = setting.classes if target.model != self._model else setting.model
            if field == setting.model and self.settings.served_model_name:
                field = setting.served_model_name
            remedy = choice_of_models(self._listed)
            raise BadInput(field, f"{target.model!r}: {problem}", remedy)
        if refusal.status in NO_PATH:
            field = setting.base_url if self.settings.endpoint is None else setting.endpoint
            problem = f"{target.url} answers {refusal}"
            raise BadInput(
                field, problem, f"check the URL, the path and {setting.backend}; {ANYWAY}"
            )
        names = refusal.named(OPTIONAL)
        remedy = f"give {setting.omit} {' '.join(names)}" if names else "leave out what it refuses"
        raise BadInput(setting.backend, problem, f"{remedy}; {ANYWAY}")


def choice_of_models(listed: Sequence[str]) -> str:
    """Return what to give as a model, given those that a server lists."""
    if not listed:
        return "name a model that the server has"
    return (
        f"choose from {', '.join(map(repr, listed[:10]))} (with {setting.tokenizer} if the "
        "tokenizer has another name)"
    )


def raise_no_key(settings: RunSettings, refusal: Refusal, headers: dict[str, str]) -> NoReturn:
    """Raise that a server refuses a key, or wants one.

    Args:
        settings: Of the one server.
        refusal: What it answers.
        headers: The headers of the request.
    """
    remedy = "give its key, or set OPENAI_API_KEY"
    if secrets(headers):
        remedy = "a key was sent: see whether it is one of this server, and for this model"
    field = setting.api_key if settings.api_key_command is None else setting.api_key_command
    raise BadInput(field, f"the server at {base_url(settings)} answers {refusal}", remedy)


def short_body(target: Target) -> dict[str, Any] | None:
    """Return a body that asks for one token, or as few as the API allows; None for an API of
    another package that takes no such prompt.

    Args:
        target: Who is asked.
    """
    tokens = LEAST_OF_RESPONSES if target.api is RESPONSES else 1
    texts = (TEXT, TEXT) if target.api is RERANK else ()
    try:
        body = target.body(Prompt(TEXT, 1, tokens, "preflight", texts=texts))
    except BadInput:
        return None
    fields: dict[str, Any] = orjson.loads(body)
    return fields


def error_of(reply: Reply) -> Any:
    """Return the error that an answer holds, as JSON; None if it is an answer."""
    answer = reply.json()
    if answer is None and (event := re.search(rb"^data: ?(\{.*)", reply.body, re.MULTILINE)):
        answer = Reply(reply.status, event[1], {}).json()
    if not isinstance(answer, dict):
        return None
    names = ("error", "detail") if reply.status < 300 else ("error", "detail", "message")
    return next((answer[name] for name in names if answer.get(name)), None)


def words_of(error: Any) -> str:
    """Return the words of an error in any of the forms that servers give it."""
    match error:
        case dict():
            text = words_of(error.get("message") or error.get("msg") or error.get("detail"))
            place = ".".join(str(part) for part in error.get("loc", ()) if part != "body")
            name = place or str(error.get("code") or error.get("type") or "")
            is_plain = name in (*USUAL, "") or name.isdigit() or name in text
            return (text if is_plain else f"{name}: {text}") if text else name
        case list():
            return "; ".join(map(words_of, error))
    return "" if error is None else str(error)


def completion_tokens(reply: Reply) -> int:
    """Return the tokens of an answer as the server counts them; 0 if it does not."""
    counts = re.findall(rb'"completion_tokens" ?: ?(\d{1,9})\b', reply.body)
    return int(counts[-1]) if counts else 0
