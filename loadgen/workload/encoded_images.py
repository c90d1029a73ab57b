"""The kinds of `Image`: `RandomImage` of random or white pixels, `ImageFile` of a file,
`ImageBytes` of a record.

`referred` says what a reference to an image means to vLLM.
"""

import hashlib
import io
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from loadgen.errors import BadInput, setting
from loadgen.workload.files import cache
from loadgen.workload.image import Image, data_url

ADDRESSES = ("http://", "https://", "file://", "data:image/")
FILE = "file://"
# The first bytes of a format.
MARKS = {b"\x89PNG\r\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"BM": "bmp"}
HEAD = 12  # bytes that tell the kind of a file
Content = Literal["random", "blank"]
PNG, JPEG = "png", "jpeg"
QUALITY = 75  # of a JPEG, as vLLM's; SGLang's is 85
FORMAT = setting.image_format
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
        count = 3 * self.height * self.width
        if self.content == "blank":
            pixels = b"\xff" * count
        else:
            import numpy as np  # a measuring process has none, and encodes no image

            generator = np.random.default_rng([self.seed, PIXELS, self.row, self.number])
            pixels = generator.bytes(count)
        if name == PNG:
            return data_url(name, _png(pixels, self.width, self.height))
        import PIL.Image

        file = io.BytesIO()
        PIL.Image.frombytes("RGB", (self.width, self.height), pixels).save(
            file, format="JPEG", quality=int(quality)
        )
        return data_url(name, file.getvalue())

    def estimated_bytes(self) -> int:
        """Return how many bytes it takes in a body, at most."""
        return BYTES_PER_PIXEL * self.height * self.width


@dataclass(frozen=True, slots=True)
class ImageFile:
    """The bytes of a file, sent as they are.

    Attributes:
        _path: The file. The underscore keeps it out of the JSON of orjson, which is what the hash
            of a prompt covers.
        kind: The format of the image: png, jpeg and so on.
        size: Its size in bytes.
        sha256: The hash of its bytes, in hex.
    """

    _path: str
    kind: str
    size: int
    sha256: str

    @classmethod
    def of(cls, path: str) -> Self:
        """Read what is known of a file.

        Raises:
            ValueError: It cannot be read, or is no image.
        """
        file_path = Path(path).expanduser()
        try:
            with file_path.open("rb") as file:
                head = file.read(HEAD)
            kind = _kind(head)
            if kind is None:
                raise ValueError(f"names {path}, which is no image")
            return cls(str(file_path), kind, file_path.stat().st_size, cache.file_sha256(file_path))
        except OSError as error:
            raise ValueError(f"names {path}, which cannot be read ({error.strerror})") from error

    def url(self) -> str:
        """Read the file into a data URL."""
        return data_url(self.kind, Path(self._path).read_bytes())

    def estimated_bytes(self) -> int:
        """As `Image.estimated_bytes`."""
        return 4 * self.size // 3


@dataclass(frozen=True, slots=True)
class ImageBytes:
    """The bytes of an image in a record, sent as they are.

    Attributes:
        _content: The bytes; the underscore as in `ImageFile`.
        kind: The format of the image: png, jpeg and so on.
        sha256: The hash of its bytes, in hex.
    """

    _content: bytes
    kind: str
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Take the bytes of an image.

        Raises:
            ValueError: They are no image.
        """
        kind = _kind(content[:HEAD])
        if kind is None:
            raise ValueError("has bytes that are no image")
        return cls(content, kind, hashlib.sha256(content).hexdigest())

    def url(self) -> str:
        """Encode the bytes as a data URL."""
        return data_url(self.kind, self._content)

    def estimated_bytes(self) -> int:
        """As `Image.estimated_bytes`."""
        return 4 * len(self._content) // 3


def referred(reference: object, *, embeds: bool = False) -> str | Image:
    """Return the image of a reference as `vllm bench serve` understands it: a URL, or the path of a
    file.

    Args:
        reference: The URL or the path, or the `bytes` of an image in a record of Parquet. The
            server reads a file itself, unless it is embedded.
        embeds: Whether the bytes of a file are sent in the body.

    Raises:
        ValueError: It is no text, its file cannot be read, or it would have to be downloaded.
    """
    if isinstance(reference, dict) and isinstance(reference.get("bytes"), bytes):
        return ImageBytes.of(reference["bytes"])
    if not isinstance(reference, str) or not reference:
        raise ValueError("has an image that is not a path or a URL")
    url = reference if reference.startswith(ADDRESSES) else FILE + reference
    if not embeds or url.startswith("data:"):
        return url
    if not url.startswith(FILE):
        raise ValueError(
            f"has the image {url[:80]}, which is on the network: download it, and give its path"
        )
    return ImageFile.of(url.removeprefix(FILE))


def parse_format(text: str) -> str:
    """Return the encoding of `--image-format`: png, or jpeg:QUALITY.

    Raises:
        BadInput: The format is unknown, or JPEG images cannot be made here.
    """
    name, colon, quality = text.partition(":")
    if name == PNG and not colon:
        return PNG
    if name != JPEG or (
        colon and not (quality.isdecimal() and quality.isascii() and 1 <= int(quality) <= 95)
    ):
        raise BadInput(
            FORMAT, f"unknown format {text!r}", "write png, jpeg, or jpeg:QUALITY with 1 to 95"
        )
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise BadInput(
            FORMAT,
            "JPEG images need the package pillow",
            f"pip install pillow, or give {setting.image_format} png",
        ) from error
    return f"{JPEG}:{int(quality) if colon else QUALITY}"


def _kind(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return "webp"
    return next((kind for mark, kind in MARKS.items() if head.startswith(mark)), None)


def _png(pixels: bytes, width: int, height: int) -> bytes:
    """Encode RGB pixels as PNG.

    Random ones are only stored: to try to compress them takes ten times as long.
    """
    line = 3 * width
    lines = b"".join(
        b"\0" + pixels[start : start + line] for start in range(0, height * line, line)
    )
    is_flat = pixels.count(pixels[:1]) == len(pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits of each of three colors
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 6 if is_flat else 0)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
