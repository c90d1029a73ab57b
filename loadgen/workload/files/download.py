"""Download of a large published file over HTTP, which resumes after a cut connection and between
commands.

The received part stays in `.part` beside the final file, and the ETag of the content in
`.part.etag`. A later attempt requests the rest (RFC 9110: Range, section 14.2, and If-Range,
section 13.1.5), and starts again if the content has changed. It does not use `huggingface_hub`,
whose 2.4 resumes only within one call: it writes to a temporary name that is new in each call, and
deletes that file when the call fails or is interrupted (`_download_to_tmp_and_move` in its
file_download.py). The data set has 673 MB. The standard library's client follows the proxies of the
environment.
"""

import fcntl
import hashlib
import http.client  # not util.http_client, which holds a whole response in memory; see above
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from loadgen.config import server_url
from loadgen.errors import BadInput, Unreachable, setting
from loadgen.version import __version__

HUB = "https://huggingface.co"
ATTEMPTS = 5  # per call
TIMEOUT_S = 60.0  # without data
READ_BYTES = 1 << 20
RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")
STRONG_TAG = re.compile(r'"[\x21\x23-\x7e\x80-\xff]*"')  # RFC 9110, section 8.8.3
REMEDY = (
    "set HTTPS_PROXY where a proxy is needed, or HF_ENDPOINT to a mirror; "
    f"or copy the file by hand and give it with {setting.dataset_path}"
)
AGAIN = "run the same command again: it resumes the download"

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Published:
    """A published file.

    Attributes:
        path: Its path below the URL of the Hugging Face hub or a mirror.
        megabytes: Its size, rounded to millions of bytes.
    """

    path: str
    megabytes: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.rpartition("/")[2]

    def has_size(self, size: int) -> bool:
        """Return whether a size in bytes is the published one."""
        return round(size / 1e6) == self.megabytes


# The file of published results of `vllm bench serve --dataset-name sharegpt`, with the URL and size
# that they give. Its hash is not pinned: `fetch` prints it for a comparison.
SHAREGPT = Published(
    "/datasets/anon8231489123/ShareGPT_Vicuna_unfiltered/resolve/main/ShareGPT_V3_unfiltered_cleaned_split.json",
    673,
)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of `fetch`.

    Attributes:
        path: The complete file.
        sha256: Its hash in hex; None if the file existed already and was not read.
    """

    path: Path
    sha256: str | None


def fetch(
    published: Published,
    folder: Path,
    hub: str = HUB,
    progress: Progress = lambda done, total: None,
) -> Fetched:
    """Download a published file into `folder`, unless it exists there.

    Args:
        published: The file.
        folder: The destination, which is created if needed.
        hub: URL of the hub or mirror, as in HF_ENDPOINT.
        progress: Called after each read with the bytes received and the total.

    Raises:
        BadInput: The URL is invalid; the folder cannot be used, has no room, or has another file of
            that name.
        Unreachable: The server does not respond, or not with this file.
    """
    if not (parts := server_url.parsed(hub)) or parts.query:
        problem = f"invalid http or https URL {hub!r}"
        raise BadInput("HF_ENDPOINT", problem, f"write https://HOST, or unset it for {HUB}")
    path = folder / published.name
    if path.exists():
        if not published.has_size(path.stat().st_size):
            problem = (
                f"{path} exists with {path.stat().st_size:,} bytes, and "
                f"{published.megabytes} MB are published"
            )
            raise BadInput("--to", problem, "move it away, or give another folder")
        return Fetched(path, None)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with Part(path) as part:
            _receive(published, hub.rstrip("/") + published.path, part, progress)
            return Fetched(path, part.finish())
    except OSError as error:
        raise BadInput(
            "--to", f"{folder} cannot be written ({error.strerror})", "give another folder"
        ) from error


class Part:
    """The received part of a file, locked by one process.

    Attributes:
        size: Its size in bytes.
    """

    def __init__(self, path: Path) -> None:
        self._destination = path
        self._path = path.with_name(path.name + ".part")
        self._tag_path = path.with_name(path.name + ".part.etag")
        self._file = open(self._path, "ab")  # noqa: SIM115 - __exit__ does
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise BadInput(
                "--to", f"another process is downloading {self._path}", "wait for it"
            ) from error
        self.size = self._file.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if not self.size:  # nothing to resume
            self._path.unlink(missing_ok=True)
            self._tag_path.unlink(missing_ok=True)
        self._file.close()

    @property
    def tag(self) -> str | None:
        """The strong ETag of the content; None if the server gave none.

        Raises:
            BadInput: The stored ETag is damaged.
        """
        try:
            tag = self._tag_path.read_text(encoding="latin-1")
        except FileNotFoundError:
            return None
        if tag and not STRONG_TAG.fullmatch(tag):
            problem = f"{self._tag_path} is damaged: it should hold the ETag of {self._path.name}"
            raise BadInput("--to", problem, "remove both, and the download starts again")
        return tag or None

    def begin(self, tag: str | None) -> None:
        """Discard the part, and start again with content of this ETag."""
        self._file.truncate(0)
        self.size = 0
        strong = STRONG_TAG.fullmatch(tag or "")  # a weak one may cover different bytes
        self._tag_path.write_text(tag if tag and strong else "", encoding="latin-1")

    def append(self, data: bytes) -> None:
        """Append data."""
        self._file.write(data)
        self.size += len(data)

    def room(self) -> int:
        """Return the free space of its disk in bytes."""
        return shutil.disk_usage(self._path.parent).free

    def finish(self) -> str:
        """Move the complete file to its place, and return its SHA-256 in hex."""
        self._file.flush()
        with open(self._path, "rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        self._path.replace(self._destination)
        self._tag_path.unlink(missing_ok=True)
        return sha256


def _receive(published: Published, url: str, part: Part, progress: Progress) -> None:
    for _ in range(ATTEMPTS):
        total = _attempt(published, url, part, progress)
        if part.size == total:
            return
    raise Unreachable(
        f"{url}: the connection was cut {ATTEMPTS} times, the last time after {part.size:,} "
        f"bytes; {AGAIN}"
    )


def _attempt(published: Published, url: str, part: Part, progress: Progress) -> int:
    """Request the rest and receive it; returns the size of the whole file, -1 if unknown.

    Raises:
        Unreachable: There is no response, or with another file.
        BadInput: The disk has no room.
    """
    headers = {"User-Agent": f"loadgen/{__version__}", "Accept-Encoding": "identity"}
    if part.size and part.tag:
        headers |= {"Range": f"bytes={part.size}-", "If-Range": part.tag}
    try:
        request = urllib.request.Request(url, headers=headers)
        # With the proxies of the environment.
        response = urllib.request.build_opener().open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416 or not part.size:
            reason = error.reason
            if 300 <= error.code < 400:  # the text of urllib has several lines
                reason = "with redirects that are circular, too many, or not to http and https"
            raise Unreachable(f"{url}: {error.code} {reason}; {REMEDY}") from error
        # Nothing is left: the part is complete, or too long.
        _, total = _range(error.headers["Content-Range"])
        if total != part.size or not published.has_size(total):
            part.begin(None)
        return total
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = getattr(error, "reason", error)
        reason = str(getattr(cause, "strerror", None) or cause) or type(error).__name__
        raise Unreachable(f"{url}: {reason}; {REMEDY}") from error
    with response:
        total = _start(published, url, part, response)
        progress(part.size, total)
        while data := _read(response):
            part.append(data[: total - part.size])
            progress(part.size, total)
    return total


def _start(published: Published, url: str, part: Part, response: http.client.HTTPResponse) -> int:
    length = response.headers["Content-Length"] or ""
    start, total = 0, int(length) if length.isdecimal() else -1
    if response.status == 206:
        start, total = _range(response.headers["Content-Range"])
    if start not in (0, part.size) or not published.has_size(total):
        offered = f"{total:,} bytes" if total >= 0 else "content of unknown size"
        problem = (
            f"{url}: {offered} from byte {start:,} on, and {published.megabytes} MB are published"
        )
        raise Unreachable(f"{problem}; open the URL in a browser to see the response; {REMEDY}")
    if part.room() < total - start:
        problem = f"{total - start:,} bytes are needed, and {part.room():,} are free"
        raise BadInput("--to", problem, "free disk space, or give another folder")
    if start == 0:
        part.begin(response.headers["ETag"])
    return total


def _read(response: http.client.HTTPResponse) -> bytes:
    """Read data; empty at the end, and also if the connection was cut: the size shows which."""
    try:
        return response.read(READ_BYTES)
    except (OSError, http.client.HTTPException):
        return b""


def _range(header: str | None) -> tuple[int, int]:
    match = RANGE.fullmatch(header or "")
    return (int(match[1] or -1), int(match[2])) if match else (-1, -1)
