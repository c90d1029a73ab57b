"""Rows of `custom_image` as `vllm bench serve` reads them: a prompt with image files, or content parts in any order."""

from collections.abc import Mapping
from typing import Any

from loadgen.workload import image
from loadgen.workload.image_file import referred

KEPT = ("id", "input_tokens", "output_tokens", "extra_body")


def with_messages(found: Mapping[str, Any], *, embeds: bool) -> dict[str, Any]:
    """Return the fields of a row with a chat of one message in place of prompt, image_files or content.

    Args:
        found: The fields: `content`, or `prompt` and `image_files`; others than those of rows are left out.
        embeds: Whether image files are sent in the body.

    Raises:
        ValueError: A field is missing or has the wrong type, or an image file cannot be read.
    """
    if "content" in found:
        content = found["content"]
        if not isinstance(content, list) or not content:
            raise ValueError("has content that is not a list, or empty")
        parts = [_part(part, embeds) for part in content]
    else:
        prompt, files = found.get("prompt"), found.get("image_files")
        if not isinstance(prompt, str) or not isinstance(files, list) or not files:
            raise ValueError("has neither content nor a prompt with a list of image_files")
        pictures = [image.part(referred(file, embeds=embeds)) for file in files]
        parts = [{"type": "text", "text": prompt}, *pictures]
    message = {"role": "user", "content": parts}
    return {name: found[name] for name in KEPT if name in found} | {"messages": [message]}


def _part(part: object, embeds: bool) -> image.Part:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or kind not in ("text", "image", "image_url"):
        raise ValueError(f"has a content part of type {kind!r}: send text, image and image_url")
    if kind == "text":
        if not isinstance(part.get("text"), str):
            raise ValueError("has a text part without a text")
        return {"type": "text", "text": part["text"]}
    given = part.get(kind)
    if kind == "image" or not isinstance(given, dict):
        return image.part(referred(given, embeds=embeds))
    # The URL stands first, before further fields such as `detail`.
    return {"type": kind, kind: {"url": None} | given | {"url": referred(given.get("url"), embeds=embeds)}}
