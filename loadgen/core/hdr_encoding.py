"""HdrHistogram's V2 compressed encoding: headers, zlib and base64 around the bytes of encoded counts."""

import base64
import struct
import zlib

_COMPRESSED_COOKIE = 0x1C849314
_COUNTS_COOKIE = 0x1C849313
_COMPRESSED_HEADER = struct.Struct(">II")  # cookie, bytes that follow
_COUNTS_HEADER = struct.Struct(">IIIIQQd")  # cookie, bytes that follow, offset, digits, lowest, highest, ratio
_LOWEST, _SIGNIFICANT_DIGITS, _OFFSET, _RATIO = 1, 3, 0, 1.0


def to_text(counts: bytes, highest: int) -> str:
    """Return the base64 text of encoded counts of integers up to `highest`, to three significant digits."""
    header = _COUNTS_HEADER.pack(_COUNTS_COOKIE, len(counts), _OFFSET, _SIGNIFICANT_DIGITS, _LOWEST, highest, _RATIO)
    compressed = zlib.compress(header + counts)
    return base64.b64encode(_COMPRESSED_HEADER.pack(_COMPRESSED_COOKIE, len(compressed)) + compressed).decode()


def from_text(text: str) -> tuple[bytes, int]:
    """Return encoded counts and the highest value that they can count.

    Raises:
        TypeError: `text` is no text.
        ValueError: It is not a V2 encoding, or one of values of another precision.
    """
    try:
        whole = base64.b64decode(text)
        cookie, size = _COMPRESSED_HEADER.unpack_from(whole)
        data = zlib.decompress(whole[_COMPRESSED_HEADER.size :])
        inner_cookie, inner_size, offset, digits, lowest, highest, _ = _COUNTS_HEADER.unpack_from(data)
    except (struct.error, zlib.error, ValueError) as error:
        raise ValueError(f"not a V2 encoding: {error}") from error
    counts = data[_COUNTS_HEADER.size :]
    if (cookie, inner_cookie) != (_COMPRESSED_COOKIE, _COUNTS_COOKIE):
        raise ValueError(f"not a V2 encoding: cookies {cookie:x} and {inner_cookie:x}")
    if size != len(whole) - _COMPRESSED_HEADER.size or inner_size != len(counts):
        raise ValueError("not a V2 encoding: its lengths are not those of its headers")
    if (offset, digits, lowest) != (_OFFSET, _SIGNIFICANT_DIGITS, _LOWEST):
        raise ValueError(f"not counts of integers to {_SIGNIFICANT_DIGITS} digits")
    return counts, highest
