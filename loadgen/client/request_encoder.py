"""`RequestEncoder`: the bytes of the requests to one target."""

import secrets

import orjson

from loadgen.core.record import Record
from loadgen.util.redaction import Redaction
from loadgen.workload.target import Target

# Fields of a body that hold the texts of embeddings, and the documents of rerank.
TEXTS = ("input", "documents")
PARTIAL = "top_n"  # asks for the best results alone


def count_texts(body: bytes) -> int:
    """Return how many results the body of a request asks for; 0 where that is not known."""
    fields = orjson.loads(body)
    for name in TEXTS:
        texts = fields.get(name)
        if isinstance(texts, list) and PARTIAL not in fields:
            is_one = bool(texts) and isinstance(texts[0], int)  # the token ids of one text
            return 1 if is_one else len(texts)
        if isinstance(texts, str):
            return 1
    return 0


class RequestEncoder:
    """Puts the head of its class before the body of each request.

    Args:
        target: Where the requests go; X-Request-Ids of two encoders differ.
    """

    def __init__(self, target: Target) -> None:
        run = f"{secrets.token_hex(8)}-"
        self._heads = [(kind.head(run), kind.session_head(run)) for kind in target.each_class]
        self._redacted = [Redaction(kind.headers) for kind in target.each_class]
        self._generates = target.generates
        self._streams = target.streams

    def encode(self, record: Record, body: bytes) -> bytes:
        """Return head and body of a request; the record gets what its answer is, and what must
        not be shown of it.
        """
        head, session_head = self._heads[record.class_number]
        record.redaction = self._redacted[record.class_number]
        if not self._streams:
            record.is_whole = self._generates
            record.results = -1 if self._generates else 0
        if not self._generates:
            record.texts = count_texts(body)
        if record.turn < 0 or session_head is None:
            lines = head % (record.index, len(body))
        else:
            lines = session_head % (record.index, len(body), record.index - record.turn)
        token = record.session_token  # a line of its own
        return lines + body if token is None else b"%b%b\r\n%b" % (lines[:-2], token, body)
