"""`SessionTokens`: what a router returns to name the server of a session, and the later turns send back."""

from loadgen.core.record import Record

SET_COOKIE, COOKIE = "set-cookie", "Cookie"


class SessionTokens:
    """Keeps the token of each session, from the answer to a turn until the session ends.

    The token is the value of a response header, and is sent in a request header of the same name. Cookies differ:
    `Set-Cookie` names one with its attributes, several headers may each set one, and `Cookie` sends all of them.

    Args:
        header: The response header.
    """

    def __init__(self, header: str) -> None:
        self._header, self._has_cookies = header, header.lower() == SET_COOKIE
        self._name = header.lower().encode()
        self._tokens: dict[int, dict[bytes, bytes]] = {}  # values by the name of the cookie; one without names

    def prepare(self, record: Record) -> None:
        """Have a request send the token of its session, and keep the header of its answer."""
        record.keeps_head = True
        if tokens := self._tokens.get(record.index - record.turn):
            record.session_token = self._line(tokens)

    def take(self, record: Record) -> None:
        """Keep the token of an answer; without one, that of an earlier turn stays."""
        head, record.response_head = record.response_head, None
        for line in (head or b"").splitlines()[1:]:
            name, _, value = line.partition(b":")
            if name.strip().lower() == self._name and value.strip():
                self._add(record.index - record.turn, value.strip())

    def end(self, record: Record) -> None:
        """Forget the session of a request."""
        self._tokens.pop(record.index - record.turn, None)

    def _add(self, session: int, value: bytes) -> None:
        tokens = self._tokens.setdefault(session, {})
        if self._has_cookies:
            name, _, content = value.partition(b";")[0].partition(b"=")
            tokens[name.strip()] = content.strip()
        else:
            tokens[b""] = value

    def _line(self, tokens: dict[bytes, bytes]) -> bytes:
        if self._has_cookies:
            return COOKIE.encode() + b": " + b"; ".join(b"%b=%b" % pair for pair in tokens.items()) + b"\r\n"
        return self._header.encode() + b": " + tokens[b""] + b"\r\n"
