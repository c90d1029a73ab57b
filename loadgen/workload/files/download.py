"""Download: a large published file, fetched over HTTP in as many attempts as it takes.

What has come stays in a file beside the final one (`.part`) until all of it has, and with it the server's name for
this very content (its ETag, in `.part.etag`), so that a later attempt goes on where one was cut off (RFC 9110: Range,
section 14.2, and If-Range, section 13.1.5) and begins again where the content is another by now.
"""

import fcntl
import hashlib
import http.client
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from loadgen.errors import BadInput, LoadgenError, Unreachable
from loadgen.version import __version__

HUB = "https://huggingface.co"
ATTEMPTS = 5  # of one call
SILENCE_S = 60.0
READ_BYTES = 1 << 20
RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")
STRONG_TAG = re.compile(r'"[\x21\x23-\x7e\x80-\xff]*"')  # RFC 9110, section 8.8.3
REMEDY = (
    "set HTTPS_PROXY where a proxy is needed, or HF_ENDPOINT to a mirror; "
    "or bring the file by hand and name it with --dataset-path"
)
AGAIN = "run the same command again: it goes on from there"

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Published:
    """A file that somebody publishes.

    Attributes:
        path: Where, below the address of the Hugging Face hub or of a mirror.
        megabytes: Its size, to the million bytes.
        sha256: Its hash in hex; None where nobody has vouched for one yet.
    """

    path: str
    megabytes: int
    sha256: str | None = None

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path.rpartition("/")[2]

    def has_size(self, size: int) -> bool:
        """Whether so many bytes are as many as are published."""
        return round(size / 1e6) == self.megabytes


# What published results of `vllm bench serve --dataset-name sharegpt` were made with, at the address and of the size
# that they give. Nobody has vouched for its hash here yet: `fetch` prints it, to be compared.
SHAREGPT = Published(
    "/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered/resolve/main/ShareGPT_V3_unfiltered_cleaned_split.json", 673
)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What `fetch` leaves.

    Attributes:
        path: The whole file.
        sha256: Its hash in hex; None where it was there already and has not been read.
    """

    path: Path
    sha256: str | None


def fetch(published: Published, folder: Path, hub: str = HUB, progress: Progress = lambda done, total: None) -> Fetched:
    """Fetch a published file into `folder`, unless it is there whole.

    Args:
        published: Which.
        folder: Where to; it is made where it does not exist.
        hub: Scheme and host of where it is published, as HF_ENDPOINT has it.
        progress: Told after each read how many bytes there are, and how many there will be.

    Raises:
        BadInput: The hub is no address; the folder cannot be used, or has no room, or has another file of that name.
        Unreachable: The server does not answer, or not with this file.
        LoadgenError: What came is not what was published.
    """
    path, hub = folder / published.name, _address(hub)
    if path.exists():
        if not published.has_size(path.stat().st_size):
            problem = f"{path} is there with {path.stat().st_size:,} bytes where {published.megabytes} MB are published"
            raise BadInput("--to", problem, "move it away, or name another folder")
        return Fetched(path, None)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with Part(path) as part:
            _receive(published, hub + published.path, part, progress)
            return Fetched(path, part.finished(published))
    except OSError as error:
        raise BadInput("--to", f"{folder} cannot be written ({error.strerror})", "name another folder") from error


def _address(hub: str) -> str:
    """The hub, without a slash at its end."""
    try:
        parts = urlsplit(hub)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or not (hub.isascii() and hub.isprintable() and " " not in hub):
        problem = f"{hub!r} is no http or https address"
        raise BadInput("HF_ENDPOINT", problem, f"write https://HOST, or unset it for {HUB}")
    return hub.rstrip("/")


class Part:
    """The part of a file that has come so far; one process at a time has it.

    Attributes:
        size: Its bytes.
    """

    def __init__(self, path: Path) -> None:
        self._whole = path
        self._path = path.with_name(path.name + ".part")
        self._tag_path = path.with_name(path.name + ".part.etag")
        self._file = open(self._path, "ab")  # noqa: SIM115 - __exit__ does
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise BadInput("--to", f"{self._path} is being fetched already", "wait for it") from error
        self.size = self._file.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if not self.size:  # nothing to go on with
            self._path.unlink(missing_ok=True)
            self._tag_path.unlink(missing_ok=True)
        self._file.close()

    @property
    def tag(self) -> str | None:
        """The server's name for the content of which this is a part; None where it gave none that tells for certain.

        Raises:
            BadInput: What is kept is no such name.
        """
        try:
            kept = self._tag_path.read_text(encoding="latin-1")
        except FileNotFoundError:
            return None
        if kept and not STRONG_TAG.fullmatch(kept):
            problem = f"{self._tag_path} does not tell of which content {self._path.name} is a part"
            raise BadInput("--to", problem, "remove both, and it is fetched from its beginning")
        return kept or None

    def begin(self, tag: str | None) -> None:
        """Forget what has come; what comes next is content of this name."""
        self._file.truncate(0)
        self.size = 0
        strong = STRONG_TAG.fullmatch(tag or "")  # a weak one may stand for other bytes
        self._tag_path.write_text(tag if tag and strong else "", encoding="latin-1")

    def append(self, data: bytes) -> None:
        """The next bytes."""
        self._file.write(data)
        self.size += len(data)

    def room(self) -> int:
        """How many more bytes its disk has room for."""
        return shutil.disk_usage(self._path.parent).free

    def finished(self, published: Published) -> str:
        """Put the whole file in its place; returns its SHA-256 in hex.

        Raises:
            LoadgenError: It is not what was published; it is thrown away.
        """
        self._file.flush()
        with open(self._path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if published.sha256 not in (None, found):
            self.begin(None)
            raise LoadgenError(
                f"{self._whole.name} came with SHA-256 {found} where {published.sha256} is published; "
                "it was thrown away: fetch it again, from elsewhere if it stays so"
            )
        self._path.replace(self._whole)
        self._tag_path.unlink(missing_ok=True)
        return found


def _receive(published: Published, url: str, part: Part, progress: Progress) -> None:
    """Bring the part to its whole size."""
    for _ in range(ATTEMPTS):
        total = _attempt(published, url, part, progress)
        if part.size == total:
            return
    raise Unreachable(f"{url}: the connection ended {ATTEMPTS} times, the last after {part.size:,} bytes; {AGAIN}")


def _attempt(published: Published, url: str, part: Part, progress: Progress) -> int:
    """Ask for what is missing and take what comes; returns the size of the whole file, -1 where it was not told.

    Raises:
        Unreachable: Nothing comes, or something else.
        BadInput: There is no room for it.
    """
    headers = {"User-Agent": f"loadgen/{__version__}", "Accept-Encoding": "identity"}
    if part.size and part.tag:
        headers |= {"Range": f"bytes={part.size}-", "If-Range": part.tag}
    try:
        request = urllib.request.Request(url, headers=headers)
        response = urllib.request.build_opener().open(request, timeout=SILENCE_S)  # with the proxies of the environment
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416 or not part.size:
            raise Unreachable(f"{url}: {_refused(error)}; {REMEDY}") from error
        _, total = _range(error.headers["Content-Range"])  # nothing follows what has come: it is whole, or too long
        if total != part.size or not published.has_size(total):
            part.begin(None)
        return total
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"{url}: {_reason(error)}; {REMEDY}") from error
    with response:
        total = _begun(published, url, part, response)
        progress(part.size, total)
        while data := _read(response):
            part.append(data[: total - part.size])
            progress(part.size, total)
    return total


def _begun(published: Published, url: str, part: Part, response: http.client.HTTPResponse) -> int:
    """Look at what the server is about to send, and make the part ready for it; returns the size of the whole file."""
    length = response.headers["Content-Length"] or ""
    start, total = 0, int(length) if length.isdecimal() else -1
    if response.status == 206:
        start, total = _range(response.headers["Content-Range"])
    if start not in (0, part.size) or not published.has_size(total):
        offered = f"{total:,} bytes" if total >= 0 else "something of unknown size"
        problem = f"{url}: {offered} from byte {start:,} on where {published.megabytes} MB are published"
        raise Unreachable(f"{problem}; look with a browser who answers there: {REMEDY}")
    if part.room() < total - start:
        problem = f"{total - start:,} bytes are to come, and there is room for {part.room():,}"
        raise BadInput("--to", problem, "make room, or name a folder with more")
    if start == 0:
        part.begin(response.headers["ETag"])
    return total


def _read(response: http.client.HTTPResponse) -> bytes:
    """The next bytes; none at the end, and where the connection ended before it: the size tells which."""
    try:
        return response.read(READ_BYTES)
    except (OSError, http.client.HTTPException):
        return b""


def _range(told: str | None) -> tuple[int, int]:
    """Start and size of the whole by a Content-Range; -1 for what it does not tell."""
    match = RANGE.fullmatch(told or "")
    return (int(match[1] or -1), int(match[2])) if match else (-1, -1)


def _refused(error: urllib.error.HTTPError) -> str:
    """A status in one line; urllib's text of a redirect that leads nowhere has several."""
    if 300 <= error.code < 400:
        return f"{error.code}, and its redirects lead nowhere: in a circle, on and on, or away from http and https"
    return f"{error.code} {error.reason}"


def _reason(error: Exception) -> str:
    """What went wrong, in the words of whoever noticed it first."""
    cause = getattr(error, "reason", error)
    return str(getattr(cause, "strerror", None) or cause) or type(error).__name__
