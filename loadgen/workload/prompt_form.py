"""`PromptForm`: the form in which prompts are sent: as they are, with the chat template around
them, as token ids.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

from msgspec import Struct, field, structs

from loadgen.config.data import NO_TOKENIZER
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.workload.chat_template.prediction import (
    SizedToServer,
    require_sized,
    template_variables,
)
from loadgen.workload.chat_template.template import REMEDY, ChatTemplate
from loadgen.workload.endpoints.api import text_of
from loadgen.workload.prompt import ANSWER, Dataset, Prompt, user_message
from loadgen.workload.target import Target
from loadgen.workload.tokenizer.tokenizer import TOKENIZER, Tokenizer, tokenizer_for

RENDER, IDS, COUNTS = (
    setting.render_chat_template,
    setting.prompt_token_ids,
    setting.input_len_counts,
)
CHAT_REMEDY = "leave it out: the server of a chat applies the template"
BATCH = 64  # prompts rendered and encoded at a time


class PromptForm(Struct, frozen=True):
    """Renders and encodes prompts. Their lengths are then those of what is sent.

    Attributes:
        tokenizer: Encodes them; None if they are sent as they are.
        template: The chat template that is put around them, or None.
        variables: Variables of the template beside the messages.
        without: A text that is left out of what the template gives.
        as_ids: Whether they are sent as token ids.
    """

    tokenizer: Tokenizer | None = None
    template: ChatTemplate | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    without: str = ""
    as_ids: bool = False

    @classmethod
    def of(cls, dataset: Dataset, settings: RunSettings, target: Target) -> Self:
        """Create the form that the settings name.

        Args:
            dataset: The data set, whose tokenizer is used if it has one.
            settings: The settings of the run.
            target: The endpoint, with the fields of every request.

        Raises:
            BadInput: There is no tokenizer or no template; or a chat is to be sent as token ids, or
                to have lengths by the server's count.
        """
        rendering = settings.render_chat_template
        as_ids = settings.prompt_token_ids
        if rendering is None and not as_ids:
            return cls()
        flag = RENDER if rendering is not None else IDS
        if as_ids and not target.api.takes_token_ids:
            problem = (
                "a chat has messages, not token ids"
                if target.chat
                else f"{target.api.path} takes no token ids"
            )
            raise BadInput(
                IDS, problem, f"use {setting.backend} openai or sglang-native, or leave it out"
            )
        if settings.tokenizer == NO_TOKENIZER:
            raise BadInput(
                flag, f"needs a tokenizer, and {TOKENIZER} is {NO_TOKENIZER}", "give the model's"
            )
        tokenizer = tokenizer_for(dataset, settings)
        if rendering is None:
            return cls(tokenizer, as_ids=True)
        if target.chat and settings.input_len_counts == "server":
            problem = (
                "the server of a chat applies the template again, so no prompt can be made "
                "to its length"
            )
            raise BadInput(COUNTS, problem, f"leave out {COUNTS} or {RENDER}")
        variables = template_variables(target.fields)
        template = ChatTemplate.of(tokenizer, tools=bool(variables.get("tools")))
        if template is None:
            raise BadInput(RENDER, f"the tokenizer {tokenizer.name} has no chat template", REMEDY)
        without = template.bos if rendering == "without-bos" else ""
        return cls(tokenizer, template, variables, without, as_ids)

    def sized(self, dataset: Dataset, settings: RunSettings) -> Dataset:
        """Return the data set; with prompts shorter by the template, if the settings count it as
        part of a length.

        Raises:
            BadInput: The data set cannot make such prompts.
        """
        if self.template is None or settings.input_len_counts != "server":
            return dataset
        require_sized(dataset, settings)
        assert isinstance(dataset, SizedToServer)
        probes = dataset.probes()
        raw = dataset.tokenizer.count(probes, special=True)
        added = {whole - alone for whole, alone in zip(self._count(probes), raw, strict=True)}
        return dataset.with_template_tokens(sorted(added), subtract=True, measure=self._count)

    def apply(self, prompts: Iterable[Prompt]) -> Iterator[Prompt]:
        """Yield the prompts in this form, with their lengths.

        Raises:
            BadInput: A prompt repeats an answer of the server, or the template refuses it.
        """
        if self.tokenizer is None:
            yield from prompts
            return
        waiting = iter(prompts)
        while batch := list(itertools.islice(waiting, BATCH)):
            sent = [self._rendered(prompt) for prompt in batch]
            ids = self.tokenizer.encode_batch([prompt.text for prompt in sent], special=True)
            for prompt, encoded in zip(sent, ids, strict=True):
                token_ids = tuple(encoded) if self.as_ids else ()
                yield structs.replace(
                    prompt, input_tokens=len(encoded), server_tokens=None, token_ids=token_ids
                )

    def provenance(self) -> dict[str, Any]:
        """Return the hash of the template as JSON; nothing without one."""
        return {} if self.template is None else {"rendered_template_sha256": self.template.sha256}

    def _rendered(self, prompt: Prompt) -> Prompt:
        if self.template is None:
            text_of(prompt)  # token ids are of one text
            return prompt
        if any(message.get("content") is ANSWER for message in prompt.messages):
            problem = "a later turn of a session repeats an answer that is not known before the run"
            raise BadInput(RENDER, problem, f"{CHAT_REMEDY}; or give {setting.history} recorded")
        text = self._text(prompt.messages or (user_message(prompt.text),))
        return structs.replace(prompt, text=text, messages=())

    def _text(self, messages: Sequence[dict[str, Any]]) -> str:
        assert self.template is not None
        text = self.template.render(messages, **self.variables)
        return text.replace(self.without, "") if self.without else text

    def _count(self, texts: Sequence[str]) -> list[int]:
        assert self.tokenizer is not None
        return self.tokenizer.count(
            [self._text((user_message(text),)) for text in texts], special=True
        )
