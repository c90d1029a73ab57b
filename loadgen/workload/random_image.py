"""`RandomImage`: an image of random or white pixels, as PNG or JPEG."""

import io
import struct
import zlib
from dataclasses import dataclass
from typing import Literal

from loadgen.errors import BadInput
from loadgen.workload.image import data_url

Content = Literal["random", "blank"]
PNG, JPEG = "png", "jpeg"
QUALITY = 75  # of a JPEG, as vLLM's; SGLang's is 85
FORMAT = "--image-format"
PIXELS = 6  # the random stream of the pixels of a seed
BYTES_PER_PIXEL = 4  # of a body, at most: three colors in base64


@dataclass(frozen=True, slots=True)
class RandomImage:
    """An RGB image of random or white pixels, a function of its fields alone.

    Attributes:
        height, width: Its size in pixels.
        encoding: png, or jpeg:QUALITY.
        content: random, where each color of each pixel is drawn by itself; or blank, all white.
        seed: The seed of the pixels, with `row` and `number`.
        row: The row of its prompt.
        number: Its position among the images of the prompt.
    """

    height: int
    width: int
    encoding: str
    content: Content
    seed: int
    row: int
    number: int

    def url(self) -> str:
        """Encode the image as a data URL."""
        name, _, quality = self.encoding.partition(":")
        pixels = self._pixels()
        data = _png(pixels, self.width, self.height) if name == PNG else _jpeg(pixels, self.width, self.height, quality)
        return data_url(name, data)

    def estimated_bytes(self) -> int:
        """Return how many bytes it takes in a body, at most."""
        return BYTES_PER_PIXEL * self.height * self.width

    def _pixels(self) -> bytes:
        count = 3 * self.height * self.width
        if self.content == "blank":
            return b"\xff" * count
        import numpy as np  # a measuring process has none, and encodes no image

        return np.random.default_rng([self.seed, PIXELS, self.row, self.number]).bytes(count)


def parse_format(text: str) -> str:
    """Return the encoding of `--image-format`: png, or jpeg:QUALITY.

    Raises:
        BadInput: The format is unknown, or JPEG images cannot be made here.
    """
    name, colon, quality = text.partition(":")
    if name == PNG and not colon:
        return PNG
    if name != JPEG or (colon and not (quality.isdecimal() and quality.isascii() and 1 <= int(quality) <= 95)):
        raise BadInput(FORMAT, f"unknown format {text!r}", "write png, jpeg, or jpeg:QUALITY with 1 to 95")
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise BadInput(
            FORMAT, "JPEG images need the package pillow", "pip install pillow, or give --image-format png"
        ) from error
    return f"{JPEG}:{int(quality) if colon else QUALITY}"


def _png(pixels: bytes, width: int, height: int) -> bytes:
    """Encode RGB pixels as PNG. Random ones are only stored: to try to compress them takes ten times as long."""
    line = 3 * width
    lines = b"".join(b"\0" + pixels[start : start + line] for start in range(0, height * line, line))
    is_flat = pixels.count(pixels[:1]) == len(pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits of each of three colors
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 6 if is_flat else 0)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _jpeg(pixels: bytes, width: int, height: int, quality: str) -> bytes:
    import PIL.Image

    file = io.BytesIO()
    PIL.Image.frombytes("RGB", (width, height), pixels).save(file, format="JPEG", quality=int(quality))
    return file.getvalue()
