"""`ImageShapes`: how many images a prompt has, and how large they are."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from loadgen.errors import BadInput
from loadgen.util.number_format import parse_range, parse_whole_number

COUNT, SIZES = "--images", "--image-sizes"
MAX_IMAGES = 1000
MAX_SIDE = 65_535  # pixels, the most of a JPEG
SIDES = re.compile(r"([0-9]{1,5})x([0-9]{1,5})", re.ASCII)
COUNT_FORMS = f"write a number of images, or MIN:MAX, up to {MAX_IMAGES}"
SIZE_FORMS = "write HEIGHTxWIDTH, a range such as 256x256-1024x1024, or several with shares: 256x256:0.7,720x1280:0.3"

Size = tuple[int, int]  # height and width, pixels


@dataclass(frozen=True, slots=True)
class ImageShapes:
    """The distribution of the images of a prompt.

    Attributes:
        fewest, most: Bounds of the number of images, inclusive; it is uniformly distributed.
        smallest, largest: Bounds of each kind of size, inclusive; height and width are uniformly distributed.
        shares: The share of each kind of size; the sum is 1.
    """

    fewest: int
    most: int
    smallest: tuple[Size, ...]
    largest: tuple[Size, ...]
    shares: tuple[float, ...]

    @classmethod
    def parse(cls, count: int | str, sizes: str) -> "ImageShapes":
        """Parse `--images` and `--image-sizes`."""
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
            height, width = generator.integers(self.smallest[kind], self.largest[kind], endpoint=True).tolist()
            yield height, width

    @property
    def rule(self) -> str:
        """A short description of the sizes for the result."""
        kinds = []
        for *ends, share in zip(self.smallest, self.largest, self.shares, strict=True):
            sizes = "-".join(f"{height}x{width}" for height, width in dict.fromkeys(ends))
            kinds.append(f"{sizes}:{share:g}")
        return ",".join(kinds)


def _parse_kind(text: str) -> tuple[Size, Size, float]:
    sides, colon, share = text.partition(":")
    low, dash, high = sides.partition("-")
    try:
        smallest, weight = _parse_size(low), float(share) if colon else 1.0
        largest = _parse_size(high) if dash else smallest
    except ValueError as error:
        raise BadInput(SIZES, f"invalid size {text!r}", SIZE_FORMS) from error
    if not all(1 <= least <= most <= MAX_SIDE for least, most in zip(smallest, largest, strict=True)):
        raise BadInput(SIZES, f"{sides} is out of range", f"give sides from 1 to {MAX_SIDE} pixels")
    if not 0 <= weight < float("inf"):
        raise BadInput(SIZES, f"the share {share} is out of range", SIZE_FORMS)
    return smallest, largest, weight


def _parse_size(text: str) -> Size:
    found = SIDES.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return int(found[1]), int(found[2])
