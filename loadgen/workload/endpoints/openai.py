"""Chat completions and completions of OpenAI."""

from loadgen.config.target import CHAT_ENDPOINT, COMPLETIONS_ENDPOINT
from loadgen.workload.endpoints.api import Api, Counts, Fields, asked_of, messages_of
from loadgen.workload.prompt import Prompt


def _chat(prompt: Prompt, model: str, fields: Fields) -> Fields:
    return {"model": model, "messages": messages_of(prompt), "max_completion_tokens": prompt.output_tokens} | fields


def _completions(prompt: Prompt, model: str, fields: Fields) -> Fields:
    return {"model": model, "prompt": asked_of(prompt), "max_tokens": prompt.output_tokens} | fields


CHAT = Api(
    CHAT_ENDPOINT,
    _chat,
    takes_messages=True,
    counts=Counts.AS_ASKED,
    ending="/chat/completions",
    length_field="max_completion_tokens",
    takes_images=True,
)
COMPLETIONS = Api(COMPLETIONS_ENDPOINT, _completions, counts=Counts.AS_ASKED, takes_token_ids=True)
