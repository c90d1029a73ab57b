"""`Image`: an image of a prompt, encoded when the body of its request is written.

An image is the `url` of a content part of a chat message. Prompts with images are therefore small;
only one body at a time holds encoded pixels. As JSON of its own, an image is its recipe or the hash
of its file. So the hash of prompts depends neither on the release of an encoder nor on a path.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

Part = dict[str, Any]


@runtime_checkable
class Image(Protocol):
    """A frozen dataclass whose fields determine the image."""

    def url(self) -> str:
        """Encode the image as a data URL."""

    def estimated_bytes(self) -> int:
        """Return how many bytes it takes in a body, at most or about."""


def part(url: str | Image) -> Part:
    """Return the content part of an image."""
    return {"type": "image_url", "image_url": {"url": url}}


def data_url(kind: str, content: bytes) -> str:
    """Return the data URL of an encoded image of a kind: png, jpeg and so on."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def to_json(value: object) -> str:
    """Return what stands for an image in a body; the `default` of orjson.

    Raises:
        TypeError: It is no image.
    """
    if isinstance(value, Image):
        return value.url()
    raise TypeError(type(value).__name__)


def images(messages: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    """Yield the images of a chat: for each content part of this type, its URL or Image, or None
    if it has none.
    """
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "image_url":
                image = part.get("image_url")
                yield image.get("url") if isinstance(image, dict) else image


def has_images(messages: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a chat has an image."""
    return any(True for _ in images(messages))


def estimated_bytes(messages: Iterable[Mapping[str, Any]]) -> int:
    """Estimate how many bytes the images of a chat take in a body."""
    return sum(
        url.estimated_bytes() if isinstance(url, Image) else len(str(url))
        for url in images(messages)
    )
