"""Images are functions of their fields: encoded for a body, and a recipe in the hash of the
prompts.
"""

import base64
import io
import struct
import sys
import zlib
from dataclasses import replace

import orjson
import pytest

from loadgen.errors import BadInput
from loadgen.workload import image
from loadgen.workload.encoded_images import RandomImage, parse_format
from loadgen.workload.image import estimated_bytes, images
from loadgen.workload.prompt import Prompt, PromptDigest

PNG = RandomImage(5, 7, "png", "random", 0, 3, 1)


def decoded(made):
    kind, _, data = made.url().partition(";base64,")
    return kind, base64.b64decode(data)


def pixels_of_png(data):
    """Width, height, and the rows without their filter bytes, read by the definition of PNG."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        chunks[kind] = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(
            kind + chunks[kind]
        )
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colors, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colors, rest) == (8, 2, [0, 0, 0])
    lines = zlib.decompress(chunks[b"IDAT"])
    stride = 1 + 3 * width
    rows = [lines[start : start + stride] for start in range(0, len(lines), stride)]
    assert len(rows) == height
    assert all(row[0] == 0 for row in rows)
    return width, height, b"".join(row[1:] for row in rows)


def test_a_png_has_its_size_and_random_pixels():
    kind, data = decoded(PNG)
    width, height, pixels = pixels_of_png(data)
    assert (kind, width, height) == ("data:image/png", 7, 5)
    assert len(set(pixels)) > 50


def test_a_blank_png_is_white_and_small():
    _, data = decoded(replace(PNG, content="blank", height=256, width=256))
    assert pixels_of_png(data)[2] == b"\xff" * (3 * 256 * 256)
    assert len(data) < 2000


def test_a_jpeg_has_its_size():
    pillow = pytest.importorskip("PIL.Image")
    kind, data = decoded(replace(PNG, encoding="jpeg:85"))
    with pillow.open(io.BytesIO(data)) as read:
        assert (kind, read.format, read.size, read.mode) == (
            "data:image/jpeg",
            "JPEG",
            (7, 5),
            "RGB",
        )


def test_pillow_reads_the_pixels_of_a_png():
    pillow = pytest.importorskip("PIL.Image")
    _, data = decoded(PNG)
    with pillow.open(io.BytesIO(data)) as read:
        assert read.tobytes() == pixels_of_png(data)[2]


@pytest.mark.parametrize("field", ["seed", "row", "number"])
def test_another_seed_row_or_number_is_another_image(field):
    assert PNG.url() == replace(PNG).url()
    assert replace(PNG, **{field: 9}).url() != PNG.url()


@pytest.mark.parametrize(
    ("text", "encoding"), [("png", "png"), ("jpeg", "jpeg:75"), ("jpeg:85", "jpeg:85")]
)
def test_a_format_names_an_encoding(text, encoding):
    pytest.importorskip("PIL.Image")
    assert parse_format(text) == encoding


@pytest.mark.parametrize("text", ["webp", "png:9", "jpeg:", "jpeg:0", "jpeg:96", "jpeg:x", ""])
def test_an_unknown_format_is_refused(text):
    with pytest.raises(BadInput, match=r"^--image-format: unknown format"):
        parse_format(text)


def test_jpeg_without_pillow_names_the_package(monkeypatch):
    for name in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        BadInput, match=r"need the package pillow; pip install pillow, or give --image-format png"
    ):
        parse_format("jpeg")
    assert parse_format("png") == "png"


def chat(*urls):
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return (
        {"role": "system", "content": "Look."},
        {"role": "user", "content": [{"type": "text", "text": "?"}, *parts]},
    )


def test_the_images_of_a_chat_are_found():
    assert list(images(chat(PNG, "data:x"))) == [PNG, "data:x"]
    assert list(images(())) == []


def test_an_image_takes_about_the_estimated_bytes_at_most():
    large = replace(PNG, height=300, width=200)
    assert len(large.url()) < 1.01 * estimated_bytes(chat(large))
    assert estimated_bytes(chat("data:x")) == len("data:x")


def test_the_hash_of_a_prompt_covers_the_recipe_of_its_images_and_encodes_none(monkeypatch):
    monkeypatch.setattr(RandomImage, "url", None)

    def sha256(found):
        digest = PromptDigest()
        digest.add(Prompt("?", 1, 1, "test", chat(found)))
        return digest.sha256

    assert sha256(PNG) == sha256(replace(PNG))
    assert sha256(PNG) != sha256(replace(PNG, width=8))


def test_a_body_holds_the_image():
    found = orjson.loads(
        orjson.dumps({"url": PNG}, image.to_json, orjson.OPT_PASSTHROUGH_DATACLASS)
    )
    assert found == {"url": PNG.url()}
    with pytest.raises(TypeError):
        orjson.dumps({"url": object()}, image.to_json)
