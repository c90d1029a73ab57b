"""`RandomImagesDataset`: prompts of random words and random images, as `random-mm` of `vllm bench
serve`.

`ImageShapes` says how many images a prompt has, and how large they are.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.util.number_format import parse_range, parse_whole_number
from loadgen.workload import endpoints
from loadgen.workload.chat_template.template import ChatTemplate
from loadgen.workload.datasets.random_words import RandomDataset
from loadgen.workload.encoded_images import RandomImage, parse_format
from loadgen.workload.endpoints.generation import GENERATE
from loadgen.workload.image import Part, part
from loadgen.workload.prompt import Prompt
from loadgen.workload.tokenizer.tokenizer import Tokenizer

COUNT, SIZES = setting.images, setting.image_sizes
MAX_IMAGES = 1000
MAX_SIDE = 65_535  # pixels, the most of a JPEG
SIDES = re.compile(r"([0-9]{1,5})x([0-9]{1,5})", re.ASCII)
COUNT_FORMS = f"write a number of images, or MIN:MAX, up to {MAX_IMAGES}"
SIZE_FORMS = (
    "write HEIGHTxWIDTH, a range such as 256x256-1024x1024, or several with shares: "
    "256x256:0.7,720x1280:0.3"
)
TAG = "<image>"
SHAPES = 5  # the random stream of the numbers and sizes of the images of a seed
Size = tuple[int, int]  # height and width, pixels


@dataclass(frozen=True, slots=True)
class ImageShapes:
    """The distribution of the images of a prompt.

    Attributes:
        fewest, most: Bounds of the number of images, inclusive; it is uniformly distributed.
        smallest, largest: Bounds of each kind of size, inclusive; height and width are uniformly
            distributed.
        shares: The share of each kind of size; the sum is 1.
    """

    fewest: int
    most: int
    smallest: tuple[Size, ...]
    largest: tuple[Size, ...]
    shares: tuple[float, ...]

    @classmethod
    def parse(cls, count: int | str, sizes: str) -> "ImageShapes":
        """Parse `--images` and `--image-sizes`.

        Raises:
            BadInput: A text is invalid, or a number is out of range.
        """
        bounds = parse_range(str(count), parse_whole_number)
        if bounds is None or bounds[1] > MAX_IMAGES:
            raise BadInput(COUNT, f"invalid number of images {str(count)!r}", COUNT_FORMS)
        kinds = [_parse_kind(word.strip()) for word in sizes.split(",")]
        total = sum(share for *_, share in kinds)
        if not total > 0:
            raise BadInput(SIZES, "all shares are 0", SIZE_FORMS)
        kept = [(low, high, share / total) for low, high, share in kinds if share]
        smallest, largest, shares = zip(*kept, strict=True)
        return cls(*bounds, smallest, largest, shares)

    def draw(self, generator: np.random.Generator) -> Iterator[Size]:
        """Draw the sizes of the images of one prompt."""
        count = int(generator.integers(self.fewest, self.most, endpoint=True))
        for kind in generator.choice(len(self.shares), size=count, p=self.shares).tolist():
            height, width = generator.integers(
                self.smallest[kind], self.largest[kind], endpoint=True
            ).tolist()
            yield height, width

    @property
    def rule(self) -> str:
        """A short description of the sizes for the result."""
        kinds = []
        for *ends, share in zip(self.smallest, self.largest, self.shares, strict=True):
            sizes = "-".join(f"{height}x{width}" for height, width in dict.fromkeys(ends))
            kinds.append(f"{sizes}:{share:g}")
        return ",".join(kinds)


@dataclass(frozen=True, slots=True)
class RandomImagesDataset:
    """The prompts of `random`, each with images of its own in the same message of a chat.

    The images of a row are functions of (`seed_prompts`, row), as its words are. Lengths are those
    of the text, because only the server knows how many tokens an image has.

    Attributes:
        unpredicted: Why the server's count of input tokens is unknown.
        words: The texts.
        shapes: The number and sizes of the images.
        encoding: png, or jpeg:QUALITY.
        settings: The settings of the run: the content of images, and where they stand in a message.
        placed: Makes a text with placeholders from the content parts of a message: SGLang's own API
            applies no chat template. None: the server does.
    """

    unpredicted: ClassVar[str] = "only the server counts the tokens of images"

    words: RandomDataset
    shapes: ImageShapes
    encoding: str
    settings: RunSettings
    placed: Callable[[Sequence[Part]], str] | None = None

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the data set from the fields of `random` and those of images.

        Raises:
            BadInput: A field is invalid, or the API takes no images.
        """
        api = endpoints.find(settings)
        words = RandomDataset.from_settings(settings)
        if not api.takes_images:
            raise BadInput(
                setting.dataset_name,
                "random-mm has images, which need a chat",
                f"use {setting.backend} openai-chat",
            )
        shapes = ImageShapes.parse(settings.images, settings.image_sizes)
        encoding = parse_format(settings.image_format)
        return cls(
            words, shapes, encoding, settings, _placed(words.tokenizer) if api is GENERATE else None
        )

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
                RandomImage(
                    height, width, self.encoding, self.settings.image_content, seed, row, number
                )
                for number, (height, width) in enumerate(sizes)
            ]
            texts = [{"type": "text", "text": prompt.text}]
            parts = [part(image) for image in images]
            content: list[Any] = (
                [*parts, *texts] if self.settings.image_position == "first" else [*texts, *parts]
            )
            chat = ({"role": "user", "content": content},)
            text = self.placed(content) if self.placed and images else prompt.text
            source = f"random-mm/{seed}/{row}"
            # Without images, SGLang's own API takes the text alone.
            messages = () if self.placed and not images else chat
            yield structs.replace(
                prompt, text=text, messages=messages, source=source, server_tokens=None
            )


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


def _parse_kind(text: str) -> tuple[Size, Size, float]:
    sides, colon, share = text.partition(":")
    low, dash, high = sides.partition("-")
    try:
        smallest, weight = _parse_size(low), float(share) if colon else 1.0
        largest = _parse_size(high) if dash else smallest
    except ValueError as error:
        raise BadInput(SIZES, f"invalid size {text!r}", SIZE_FORMS) from error
    if not all(
        1 <= least <= most <= MAX_SIDE for least, most in zip(smallest, largest, strict=True)
    ):
        raise BadInput(SIZES, f"{sides} is out of range", f"give sides from 1 to {MAX_SIDE} pixels")
    if not 0 <= weight < float("inf"):
        raise BadInput(SIZES, f"the share {share} is out of range", SIZE_FORMS)
    return smallest, largest, weight


def _parse_size(text: str) -> Size:
    sides = SIDES.fullmatch(text)
    if sides is None:
        raise ValueError(text)
    return int(sides[1]), int(sides[2])
