"""`ImageFile` and `ImageBytes`: an image of a file or of a record, and what a reference to one means to vLLM."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from loadgen.workload.files import file_hash
from loadgen.workload.image import Image, data_url

ADDRESSES = ("http://", "https://", "file://", "data:image/")
FILE = "file://"
MARKS = {b"\x89PNG\r\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"BM": "bmp"}  # the first bytes of a format
HEAD = 12  # bytes that tell the kind of a file


@dataclass(frozen=True, slots=True)
class ImageFile:
    """The bytes of a file, sent as they are.

    Attributes:
        _path: The file. The underscore keeps it out of the JSON of orjson, which is what the hash of a prompt covers.
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
        found = Path(path).expanduser()
        try:
            with found.open("rb") as file:
                head = file.read(HEAD)
            kind = _kind(head)
            if kind is None:
                raise ValueError(f"names {path}, which is no image")
            return cls(str(found), kind, found.stat().st_size, file_hash.sha256(found))
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
    """Return the image of a reference as `vllm bench serve` understands it: a URL, or the path of a file.

    Args:
        reference: The URL or the path, or the `bytes` of an image in a record of Parquet. The server reads a file
            itself, unless it is embedded.
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
        raise ValueError(f"has the image {url[:80]}, which is on the network: download it, and give its path")
    return ImageFile.of(url.removeprefix(FILE))


def _kind(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return "webp"
    return next((kind for mark, kind in MARKS.items() if head.startswith(mark)), None)
