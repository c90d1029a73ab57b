"""`KeyCommand`: a command whose standard output is an API key, as those of clouds have one."""

import asyncio
import base64
import contextlib
import math
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import orjson

from loadgen.errors import BadInput, setting
from loadgen.util.redaction import KEY_VARIABLE, WithCredentials

FLAG = setting.api_key_command
LIMIT_S = 60.0  # for a command to end
MAX_KEY_LENGTH = 65536
MAX_SHOWN = 200  # characters of what a command says
# Where JSON holds a key and its end: Kubernetes' ExecCredential, gcloud's config-helper, az and
# OAuth. A part holds both; an end is a date, seconds of Unix time, or seconds from now.
PARTS = ("status", "credential")
KEYS = ("token", "access_token", "accessToken", "id_token")
DATES = ("expirationTimestamp", "token_expiry", "expires_on", "expiresOn")
LIFETIME = "expires_in"
REMEDY = "let it print the key alone, or JSON with a token"


class Key(WithCredentials, frozen=True):
    """A key that a command has printed.

    Attributes:
        text: The key.
        expires_s: When it ends, s of Unix time; infinity: it does not say, or a time that has
            passed, as the clocks differ.
    """

    text: str
    expires_s: float = math.inf


_latest: dict[str, Key] = {}  # by command


def latest(command: str | None) -> Key | None:
    """Return the key that a command has printed last in this process; None if it has not run."""
    return None if command is None else _latest.get(command)


def in_process(command: str | None) -> str | None:
    """Return the key that this process has without one in the settings: the latest of a command,
    else of the environment.
    """
    key = latest(command)
    return os.environ.get(KEY_VARIABLE) if key is None else key.text


async def renew(command: str) -> Key:
    """Run a command and return the key that it prints, which is then its latest.

    Raises:
        BadInput: It fails, does not end within LIMIT_S, or prints no key.
    """
    _latest[command] = key = read(await _output(command))
    return key


async def _output(command: str) -> bytes:
    """Run a command in the shell, and return what it prints.

    Raises:
        BadInput: It fails, or does not end in time.
    """
    process = await asyncio.create_subprocess_shell(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != KEY_VARIABLE},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            output, errors = await process.communicate()
    except TimeoutError:
        problem = f"has not ended within {LIMIT_S:g} s"
        raise BadInput(FLAG, problem, "run it by hand: it may wait for an answer") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines() or ["it printed no error"]
        problem = f"ended with status {process.returncode}: {lines[-1].strip()[:MAX_SHOWN]}"
        raise BadInput(FLAG, problem, "run it by hand, and correct it")
    return output


def read(output: bytes) -> Key:
    """Read what a command has printed: a key alone, or JSON that holds one and its end.

    A key that is a JSON Web Token says itself when it ends.

    Raises:
        BadInput: It is neither. The message shows nothing of it.
    """
    text = output.decode("latin-1").strip()
    ends: list[float] = []
    if text.startswith("{"):
        text, ends = _of_json(text)
    if not text:
        raise BadInput(FLAG, "has printed no key", REMEDY)
    if len(text) > MAX_KEY_LENGTH or not all("!" <= letter <= "ÿ" for letter in text):
        raise BadInput(FLAG, "has printed more than one word", REMEDY)
    expires_s = min(ends or _ends_of_token(text), default=math.inf)
    return Key(text, expires_s if expires_s > time.time() else math.inf)


def _of_json(text: str) -> tuple[str, list[float]]:
    """Return the key that JSON holds, and when it ends as far as it says, s of Unix time."""
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise BadInput(FLAG, "has printed JSON that is not complete", REMEDY) from None
    parts = [whole, *(whole[name] for name in PARTS if isinstance(whole.get(name), dict))]
    for fields in parts:
        for key in (fields[name] for name in KEYS if isinstance(fields.get(name), str)):
            return key.strip(), [*_ends(fields)]
    raise BadInput(FLAG, "has printed JSON without a token", REMEDY)


def _ends(fields: dict[str, Any]) -> Iterator[float]:
    """Yield the times at which a key ends that JSON has, s of Unix time."""
    for name in fields.keys() & {*DATES}:
        with contextlib.suppress(ValueError, TypeError):
            yield _unix_time(fields[name])
    with contextlib.suppress(ValueError, TypeError, KeyError):
        yield time.time() + float(fields[LIFETIME])


def _unix_time(value: Any) -> float:
    """Read a time, seconds or a date; a date without a zone is local time, as az prints it."""
    try:
        return float(value)
    except ValueError:
        return datetime.fromisoformat(value).timestamp()


def _ends_of_token(text: str) -> list[float]:
    """Return when a JSON Web Token ends, s of Unix time; nothing for any other key."""
    _, *rest = text.split(".")
    if len(rest) == 2:
        with contextlib.suppress(ValueError, TypeError, KeyError):
            return [float(orjson.loads(base64.urlsafe_b64decode(f"{rest[0]}==="))["exp"])]
    return []
