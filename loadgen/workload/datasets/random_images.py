"""`RandomImagesDataset`: prompts of random words and random images, as `random-mm` of `vllm bench serve`."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import endpoints
from loadgen.workload.chat_template.template import ChatTemplate
from loadgen.workload.datasets.image_shapes import ImageShapes
from loadgen.workload.datasets.random_words import RandomDataset
from loadgen.workload.endpoints.generate import GENERATE
from loadgen.workload.image import Part, part
from loadgen.workload.prompt import Prompt
from loadgen.workload.random_image import RandomImage, parse_format
from loadgen.workload.tokenizer.tokenizer import Tokenizer

TAG = "<image>"
SHAPES = 5  # the random stream of the numbers and sizes of the images of a seed


@dataclass(frozen=True, slots=True)
class RandomImagesDataset:
    """The prompts of `random`, each with images of its own in the same message of a chat.

    Attributes:
        encoding: Png, or jpeg:QUALITY.
        placed: Makes a text with placeholders from the content parts of a message: SGLang's own API
            applies no chat template. None: the server does.
    """

    # The images of a row are functions of (`seed_prompts`, row), as its words are. Lengths are those of the text,
    # because only the server knows how many tokens an image has.

    # why the server's count of input tokens is unknown
    unpredicted: ClassVar[str] = "only the server counts the tokens of images"

    words: RandomDataset
    shapes: ImageShapes
    encoding: str
    settings: RunSettings
    placed: Callable[[Sequence[Part]], str] | None = None

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from the fields of `random` and those of images."""
        api, words = endpoints.find(settings), RandomDataset.from_settings(settings)
        if not api.takes_images:
            raise BadInput("--dataset-name", "random-mm has images, which need a chat", "use --backend openai-chat")
        shapes, encoding = ImageShapes.parse(settings.images, settings.image_sizes), parse_format(settings.image_format)
        return cls(words, shapes, encoding, settings, _placed(words.tokenizer) if api is GENERATE else None)

    def prompts(self, count: int) -> Iterator[Prompt]:
        """Yield `count` prompts, the same in every call. No image is encoded."""
        return self._with_images(self.words.numbered(count))

    def beyond(self, count: int) -> Iterator[Prompt]:
        """Yield the prompts of rows `count`, `count` + 1 and so on, endlessly."""
        return self._with_images(self.words.numbered_beyond(count))

    def provenance(self) -> dict[str, Any]:
        """As `Dataset.provenance`."""
        return self.words.provenance() | {
            "name": "random-mm",
            "images_per_prompt": [self.shapes.fewest, self.shapes.most],
            "image_sizes": self.shapes.rule,
            "image_format": self.encoding,
            "image_content": self.settings.image_content,
            "image_position": self.settings.image_position,
        }

    def _with_images(self, numbered: Iterable[tuple[int, Prompt]]) -> Iterator[Prompt]:
        seed = self.words.drawing.seed
        for row, prompt in numbered:
            sizes = self.shapes.draw(np.random.default_rng([seed, SHAPES, row]))
            images = [
                RandomImage(height, width, self.encoding, self.settings.image_content, seed, row, number)
                for number, (height, width) in enumerate(sizes)
            ]
            texts = [{"type": "text", "text": prompt.text}]
            parts = [part(image) for image in images]
            content: list[Any] = [*parts, *texts] if self.settings.image_position == "first" else [*texts, *parts]
            chat = ({"role": "user", "content": content},)
            text = self.placed(content) if self.placed and images else prompt.text
            source = f"random-mm/{seed}/{row}"
            # Without images, SGLang's own API takes the text alone.
            messages = () if self.placed and not images else chat
            yield replace(prompt, text=text, messages=messages, source=source, server_tokens=None)


def _placed(tokenizer: Tokenizer) -> Callable[[Sequence[Part]], str]:
    """Return a function that renders content parts by the tokenizer's chat template.

    Without a template for images, one tag stands before the text, as in SGLang's own tool.
    """
    template = ChatTemplate.of(tokenizer)

    def render(content: Sequence[Part]) -> str:
        parts = [part if part["type"] == "text" else {"type": "image"} for part in content]
        with contextlib.suppress(BadInput):
            if template is not None:
                return template.render([{"role": "user", "content": parts}])
        return TAG + "".join(part["text"] for part in parts if part["type"] == "text")

    return render
