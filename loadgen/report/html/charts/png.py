"""PNG: a picture of shades, one byte a pixel."""

import struct
import zlib
from collections.abc import Sequence

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(rows: Sequence[bytes]) -> bytes:
    """A grey picture.

    Args:
        rows: From above, all of one length; a byte is a pixel, 0 black and 255 white.
    """
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)  # 8 bits, grey, deflated, not interlaced
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 9)  # each row unfiltered
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
