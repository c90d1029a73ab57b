"""SGLang's own API."""

from loadgen.workload.endpoints.api import LORA_PATH, SAMPLING, Api, Counts, Fields, asked_of
from loadgen.workload.image import images
from loadgen.workload.prompt import Prompt

SAMPLED = frozenset((*SAMPLING, "ignore_eos"))  # what it takes as sampling parameters


def _generate(prompt: Prompt, model: str, fields: Fields) -> Fields:
    """Make a body, which names no model and has its sampling parameters and images apart.

    The text of a prompt with images has placeholders for them.
    """
    sampling = {name: value for name, value in fields.items() if name in SAMPLED}
    others = {name: value for name, value in fields.items() if name not in SAMPLED}
    sampling = {"max_new_tokens": prompt.output_tokens} | sampling | others.pop("sampling_params", {})
    if pictures := list(images(prompt.messages)):
        return {"text": prompt.text, "sampling_params": sampling, "image_data": pictures} | others
    return {"input_ids" if prompt.token_ids else "text": asked_of(prompt), "sampling_params": sampling} | others


GENERATE = Api(
    "/generate",
    _generate,
    counts=Counts.WITH_EVENTS,
    ending="/generate",
    takes_images=True,
    takes_token_ids=True,
    length_field="max_new_tokens",
    prompt_fields=frozenset(("text", "input_ids")),
    adapter_field=LORA_PATH,
)
