"""Redaction: replace the credentials of a run in texts of a server, in commands and in URLs by
MARK.
"""

import base64
import binascii
import contextlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

import orjson
from msgspec import Struct

KEY_VARIABLE = (
    "OPENAI_API_KEY"  # the API key where no setting gives one; never in a child's environment
)
MIN_SECRET = 4  # characters; a shorter value occurs in any text
MIN_WORD_SECRET = 8  # characters of a value that may be a word
KEY_START = 8  # characters of the start of a key, which servers quote, are redacted too
MARK = "(given)"  # replaces a credential
# Of an engine, with its value.
FLAG = re.compile(r"(--[\w-]*(?:api|hf|auth)[-_](?:key|token)[ =])\S+")
# Of an environment variable whose value is redacted.
SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_LINE = re.compile(rf"\s*({HEADER_NAME.pattern})\s*[:=](.*)", re.DOTALL)
SECRET_HEADER = re.compile(
    "auth|cookie|credential|key|password|secret|session|signature|token", re.IGNORECASE
)
# Of the header Authorization; the secret follows.
SCHEMES = ("apikey", "basic", "bearer", "digest", "key", "token")
# Values for clients that demand a key although the server needs none.
PLACEHOLDER = re.compile(
    "(?:an?|any|anything|api|dummy|empty|example|fake|key|my|needed|no|none|not|null|placeholder|required|secret|sk|test"
    "|token|unused|used|[-_. ])+",
    re.IGNORECASE,
)


class WithCredentials(Struct, frozen=True):
    """A struct that holds credentials, so its `repr` shows no values."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


def redact_flags(text: str) -> str:
    """Redact the values of key and token flags in a piece of a command line."""
    return FLAG.sub(rf"\1{MARK}", text)


def redact_command(words: Sequence[str]) -> list[str]:
    """Redact the values of key and token flags in the words of a command."""
    shown: list[str] = []
    for word in words:
        name, equals, _ = word.partition("=")
        if shown and FLAG.match(f"{shown[-1]} {word}"):
            word = MARK
        elif equals and FLAG.match(word):
            word = f"{name}={MARK}"
        shown.append(word)
    return shown


def redact_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Redact the values of environment variables whose names say that they are credentials."""
    return {name: MARK if SECRET_NAME.search(name) else value for name, value in env.items()}


def header_name(header: str) -> str:
    """Return the name in a --header value, also in a malformed one.

    It never contains any of the value.
    """
    return (split_header(header) or ("",))[0]


def split_header(header: str) -> tuple[str, str] | None:
    """Return name and value of a --header value, `Name=value` or curl's `Name: value`; None if it
    is neither.
    """
    match = HEADER_LINE.fullmatch(header)
    return None if match is None else (match[1], match[2].strip())


def redact_user(url: str) -> str:
    """Replace user and password of a URL by MARK."""
    scheme, slashes, _ = url.partition("://")
    return (
        f"{scheme + slashes if slashes else ''}{MARK}@{url.rpartition('@')[2]}"
        if "@" in url
        else url
    )


class Redaction:
    """A function that replaces the secrets of request headers in a text by MARK.

    It knows a secret as it is, and as JSON, a URL or base64 spell it. The first KEY_START
    characters of a secret, which servers quote, are replaced too; at the end of a text, which may
    be cut off, fewer are enough.

    Args:
        headers: The headers of the requests, name to value. `secrets` chooses the secret ones.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._forms = spellings(secrets(headers))
        self._pattern = re.compile("|".join(map(re.escape, self._forms)), re.IGNORECASE)
        self._beginnings = [form for form in self._forms if len(form) > KEY_START]
        self._traces = {form[:MIN_SECRET].lower() for form in self._forms}

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets."""
        lowered = text.lower()
        if not any(
            trace in lowered for trace in self._traces
        ):  # nearly always, and a hundred times as fast
            return text
        text = self._pattern.sub(MARK, text)
        for form in self._beginnings:
            text = _without_beginnings(text, form)
        for form in self._forms:
            for size in range(min(len(form) - 1, len(text)), MIN_SECRET - 1, -1):
                if text.endswith(form[:size]):
                    return text[:-size] + MARK
        return text


def secrets(headers: Mapping[str, str]) -> list[str]:
    """Return the confidential parts of request headers.

    A placeholder such as EMPTY is not confidential. In a header whose name says that it holds a
    credential, a secret has 8 characters or more, or 4 with letters and digits. In any other header
    it has 8 with letters and digits.

    Args:
        headers: Name to value, as they are sent.
    """
    return [
        part
        for name, value in headers.items()
        for part, shortest in _parts(name, value)
        if not PLACEHOLDER.fullmatch(part) and len(part) >= shortest
    ]


def is_credential(name: str, value: str) -> bool:
    """Return whether a request header has a confidential part."""
    return bool(secrets({name: value}))


def _without_beginnings(text: str, form: str) -> str:
    """Replace each part of a text that begins like a secret, as far as it is the same."""
    redacted = ""
    position = 0
    for match in re.finditer(re.escape(form[:KEY_START]), text, re.IGNORECASE):
        if match.start() < position:
            continue  # inside the previous match
        end = match.end()
        for character in form[KEY_START:].lower():
            if text[end : end + 1].lower() != character:
                break
            end += 1
        redacted += text[position : match.start()] + MARK
        position = end
    return redacted + text[position:]


def spellings(values: Iterable[str]) -> list[str]:
    """Return all forms in which a server may repeat these secrets, the longest first."""
    return sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)


def _parts(name: str, value: str) -> Iterator[tuple[str, float]]:
    """Yield the parts of a header that may be secret, each with the minimum length of a secret;
    infinity for never.
    """
    scheme, _, rest = value.partition(" ")
    rest, scheme = rest.strip(), scheme.lower()
    parts = [rest] if rest and scheme in SCHEMES else [value, rest]
    if name.lower() == "cookie":
        parts += [pair.partition("=")[2].strip() for pair in value.split(";")]
    for part in parts:
        if SECRET_HEADER.search(name):
            yield part, MIN_SECRET if _is_mixed(part) else MIN_WORD_SECRET
        else:
            yield part, MIN_WORD_SECRET if _is_mixed(part) else math.inf
    if scheme == "basic":
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            user = base64.b64decode(rest, validate=True).decode()
            yield user, MIN_SECRET
            yield user.partition(":")[2], MIN_SECRET


def _is_mixed(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield orjson.dumps(secret).decode()[1:-1]
    yield quote(secret, safe="")
    yield base64.b64encode(secret.encode()).decode()
