"""`TokenEnds`: where the tokens of each prompt end in its text, as a server sees it with its
chat template.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from loadgen.config.load import AS_IS
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload.chat_template.prediction import TokenPrediction
from loadgen.workload.chat_template.template import ChatTemplate
from loadgen.workload.prompt import ANSWER, UNPLANNED, Dataset, Prompt, user_message
from loadgen.workload.tokenizer.tokenizer import Tokenizer, tokenizer_of

Ends = NDArray[np.int64]
VERSION = 1
ANSWER_TOKEN = (
    "\x1e"  # stands for each token of an answer: what comes before it says which answer it is
)


class TokenizedPrompt(Struct, frozen=True):
    """The text of a prompt, and where its tokens end.

    Attributes:
        text: The text.
        ends: The character at which each token ends.
        before: Tokens before the text, the same of all prompts.
        answered: Tokens up to the end of the last answer that it repeats, `before` included; 0: it
            repeats none.
        tokens: All tokens of the prompt.
    """

    text: str
    ends: Ends
    before: int
    answered: int
    tokens: int


class TokenEnds(Struct, dict=True):
    """Tokenizes prompts, which are added in the order of their rows.

    A text whose words are as many as its tokens is divided at its spaces: each word is then a
    token, and nothing is encoded.

    Attributes:
        tokenizer: The tokenizer.
        template: The chat template; None: there is none, or it is unknown.
        options: Variables of the template.
        before: Tokens before each text, where there is no template: special tokens, and those of an
            unknown template.
    """

    tokenizer: Tokenizer
    template: ChatTemplate | None = None
    options: dict[str, Any] = {}
    before: int = 0
    # Of each prompt of the session: up to its own, in tokens.
    _answers: list[list[int]] = []
    _known: dict[str, Ends] = {}  # of the texts of the session so far

    def __post_init__(self) -> None:
        self._frame = cache(self._find_frame)
        self._piece_ends = cache(self._find_piece_ends)

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        settings: RunSettings,
        prediction: TokenPrediction | None = None,
        *,
        chat: bool,
    ) -> Self | None:
        """Create it for the prompts of a run; None without a tokenizer.

        Args:
            dataset: The data set, whose tokenizer is used if it has one. If the state of the cache
                is asked for, that of the run is loaded otherwise.
            settings: The settings of the run.
            prediction: What is known of the chat template.
            chat: Whether the server applies its chat template.
        """
        tokenizer = getattr(dataset, "tokenizer", None)
        if not isinstance(tokenizer, Tokenizer):
            if settings.cache == AS_IS:
                return None
            try:
                tokenizer = tokenizer_of(settings)
            except BadInput:
                return None
        if chat and prediction is not None and prediction.template is not None:
            return cls(tokenizer, prediction.template, prediction.options)
        added = prediction.template_tokens if chat and prediction is not None else None
        return cls(
            tokenizer, before=tokenizer.special_tokens + (added.tokens if added is not None else 0)
        )

    @property
    def key(self) -> list[Any]:
        """What the tokens depend on besides the tokenizer, as JSON."""
        return [VERSION, self.template.sha256 if self.template else None, self.options, self.before]

    def tokenize(self, prompt: Prompt) -> TokenizedPrompt | None:
        """Tokenize the next prompt, which has one text and no images.

        Returns:
            None if it cannot be known: the prompt has tools or calls of them, which each template
                writes in its own
            way, or the template leaves messages out.
        """
        if not prompt.follows:
            self._answers, self._known = [], {}
        # Of the conversation that it goes on with.
        answers = self._answers[-prompt.after[0]] if prompt.follows else []
        self._answers.append([*answers, prompt.output_tokens])
        if self.template or prompt.messages:
            return self._of_chat(prompt, answers)
        words = prompt.input_tokens - self.tokenizer.special_tokens
        ends = self._word_ends(prompt.text, words)
        tokens = prompt.server_tokens or self.before + len(ends)
        return TokenizedPrompt(prompt.text, ends, self.before, 0, tokens)

    def _of_chat(self, prompt: Prompt, answer_tokens: list[int]) -> TokenizedPrompt | None:
        messages = prompt.messages or (user_message(prompt.text),)
        if "tools" in prompt.fields or any(message.get("tool_calls") for message in messages):
            return None
        frame = self._frame(tuple(str(message.get("role")) for message in messages))
        if frame is None:
            return None
        words = (
            UNPLANNED if prompt.messages else prompt.input_tokens - self.tokenizer.special_tokens
        )
        text, parts, answered, answers = (
            [frame[0]],
            [self._piece_ends(frame[0])],
            0,
            iter(answer_tokens),
        )
        for message, after in zip(messages, frame[1:], strict=True):
            content = message.get("content")
            if content is ANSWER:
                count = next(answers)
                content_text, ends = ANSWER_TOKEN * count, np.arange(1, count + 1)
                answered = sum(map(len, parts)) + count
            else:
                content_text = _text_of(content)
                ends = self._word_ends(content_text, words)
            for piece, piece_ends in ((content_text, ends), (after, self._piece_ends(after))):
                parts.append(piece_ends + sum(map(len, text)))
                text.append(piece)
        ends = np.concatenate(parts)
        tokens = prompt.server_tokens or self.before + len(ends)
        return TokenizedPrompt(
            "".join(text), ends, self.before, answered and self.before + answered, tokens
        )

    def _word_ends(self, text: str, words: int) -> Ends:
        """Return the ends of the tokens of a text that has this many tokens; UNPLANNED: it is
        not known.
        """
        if words > 0 and text.isascii() and text.count(" ") + 1 == words:
            spaces = np.flatnonzero(np.frombuffer(text.encode(), np.uint8) == ord(" "))
            return np.append(spaces, len(text))
        if text not in self._known:
            self._known[text] = np.array(self.tokenizer.ends([text])[0], dtype=np.int64)
        return self._known[text]

    def _find_frame(self, roles: Sequence[str]) -> Sequence[str] | None:
        return (
            [""] * (len(roles) + 1)
            if self.template is None
            else self.template.frame(roles, **self.options)
        )

    def _find_piece_ends(self, piece: str) -> Ends:
        return np.array(
            [] if self.template is None else self.template.piece_ends(piece), dtype=np.int64
        )


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
