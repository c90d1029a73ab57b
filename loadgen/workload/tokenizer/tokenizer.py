"""Tokenizers: a thin face over Hugging Face's `tokenizers`, and the three places where one is found."""

import contextlib
import hashlib
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from tokenizers import Tokenizer as Core

from loadgen.config.data import NO_TOKENIZER
from loadgen.errors import BadInput
from loadgen.workload.tokenizer import gguf_file

if TYPE_CHECKING:
    from loadgen.config.settings import RunSettings

FIELD = "--tokenizer"
FILE = "tokenizer.json"
TEMPLATES = ("chat_template.jinja", "tokenizer_config.json")  # files that may hold the chat template beside it


class Tokenizer:
    """Counts, encodes and decodes text as a server with the same tokenizer.json does.

    Batches are encoded on all cores, or on one where the environment says TOKENIZERS_PARALLELISM=false.

    Attributes:
        name: What the user called it: a path or a hub name.
        sha256: Hash of its tokenizer.json, in hex.
        special_tokens: How many tokens it puts around a single text (such as a beginning-of-sequence token).
        size: Tokens in the vocabulary, added ones included.
        own_size: Tokens in the vocabulary without added ones.
        folder: Where its file lies, and what else belongs to it; None where there is no file.
        inside: What stands beside it in a model's file; None where it is not from one.
    """

    def __init__(
        self, core: Core, name: str, sha256: str, folder: Path | None = None, inside: gguf_file.Inside | None = None
    ) -> None:
        core.no_truncation()  # some files cut at 512 tokens, which would make every long text count 512
        core.no_padding()
        self._core, self.name, self.sha256, self.folder, self.inside = core, name, sha256, folder, inside
        self.special_tokens = core.num_special_tokens_to_add(False)
        self.size, self.own_size = core.get_vocab_size(), core.get_vocab_size(with_added_tokens=False)

    def __repr__(self) -> str:
        return f"<Tokenizer {self.name} {self.size} tokens>"

    def provenance(self) -> dict[str, Any]:
        """Return its name and hash, as JSON for a data set's own provenance."""
        return {"tokenizer": self.name, "tokenizer_sha256": self.sha256}

    def count(self, texts: Sequence[str], *, special: bool = False) -> list[int]:
        """Return the tokens of each text; with `special`, those that the tokenizer puts around a text as well."""
        return [len(encoding) for encoding in self._core.encode_batch_fast(texts, add_special_tokens=special)]

    def encode(self, text: str) -> list[int]:
        """Return the ids of one text, without special tokens around it."""
        return self._core.encode(text, add_special_tokens=False).ids

    def encode_batch(self, texts: Sequence[str], *, special: bool = False) -> list[list[int]]:
        """Return the ids of each text; with `special`, those that the tokenizer puts around a text as well."""
        return [encoding.ids for encoding in self._core.encode_batch_fast(texts, add_special_tokens=special)]

    def ends(self, texts: Sequence[str]) -> list[list[int]]:
        """Return at which character of each text every token of it ends, without special tokens."""
        batch = self._core.encode_batch(texts, add_special_tokens=False)
        return [[end for _, end in encoding.offsets] for encoding in batch]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids, special tokens included."""
        return self._core.decode(ids, skip_special_tokens=False)

    def decode_batch(self, rows: Sequence[Sequence[int]], *, special: bool = True) -> list[str]:
        """Return the text of each row of ids, special tokens included unless `special` is false."""
        return self._core.decode_batch(rows, skip_special_tokens=not special)

    def token(self, number: int) -> str:
        """Return a token as the vocabulary spells it (a space may be "Ġ" or "▁"), or "" for an id that is not used."""
        return self._core.id_to_token(number) or ""

    def vocab(self) -> dict[str, int]:
        """Return every token, as the vocabulary spells it, with its id; without added tokens."""
        return self._core.get_vocab(with_added_tokens=False)

    def pieces(self, text: str) -> int | None:
        """Return into how many pieces the text is cut before tokens are sought in each, None where it is not cut."""
        if self._core.pre_tokenizer is None:
            return None
        normal = self._core.normalizer.normalize_str(text) if self._core.normalizer else text
        return len(self._core.pre_tokenizer.pre_tokenize_str(normal))


def name_of(settings: "RunSettings") -> str | None:
    """The name of a run's tokenizer, `--tokenizer` or else `--model`; None where neither is given."""
    return settings.tokenizer or settings.model


def of_settings(settings: "RunSettings") -> Tokenizer:
    """Load the tokenizer that a run's settings name: `--tokenizer`, else the one of `--model`.

    Raises:
        BadInput: Neither is given, there is to be none, or `load` refuses it.
    """
    name = name_of(settings)
    if name == NO_TOKENIZER:
        problem = f"{name}, and the data set {settings.dataset_name} needs one"
        raise BadInput(FIELD, problem, "name one, or send ready prompts: --dataset-name jsonl, csv or custom")
    if name is None:
        raise BadInput(FIELD, "is not given, and there is no --model to take it from", f"name a {FILE} or a hub name")
    return load(name)


class OnDemand:
    """The tokenizer that a run's settings name, loaded when it is first called for: that of ready prompts.

    Attributes:
        absent: Whether there is to be none.
    """

    def __init__(self, settings: "RunSettings") -> None:
        self._settings = settings
        self.absent = settings.tokenizer == NO_TOKENIZER
        self._loaded: Tokenizer | None = None

    def __call__(self) -> Tokenizer:
        """Load it, or return what was loaded.

        Raises:
            BadInput: As `of_settings`.
        """
        if self._loaded is None:
            try:
                self._loaded = of_settings(self._settings)
            except BadInput as error:
                if self.absent:
                    raise
                remedy = f"{error.remedy}; or {FIELD} {NO_TOKENIZER}, to send ready prompts that only the server counts"
                raise BadInput(error.field, error.problem, remedy) from error
        return self._loaded

    def provenance(self) -> dict[str, Any]:
        """Return its name and hash, as `Tokenizer.provenance`; both None where it was not called for."""
        return self._loaded.provenance() if self._loaded else {"tokenizer": None, "tokenizer_sha256": None}


def file_of(settings: "RunSettings") -> Path | None:
    """The file that `of_settings` would read, None where there is none on this machine."""
    name = name_of(settings)
    if name is None or name == NO_TOKENIZER:
        return None
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        path = path / FILE
    if path.is_file():
        return path
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(name, FILE)
    except ValueError:
        return None
    return Path(found) if isinstance(found, str) else None


def load(name: str) -> Tokenizer:
    """Load a tokenizer from a tokenizer.json, from a folder, from a model's .gguf file, or by its name on the hub.

    A tokenizer.json is read as it stands. Only a folder that has none goes through `transformers`, which is slow to
    import and replaces parts of some tokenizers by its own.

    Raises:
        BadInput: There is no such file or folder, it is not a tokenizer, or the hub does not give it.
    """
    path = Path(os.path.expanduser(name))
    if path.is_file():
        return _from_gguf(path, name) if path.suffix == gguf_file.SUFFIX else _from_file(path, name)
    if path.is_dir():
        return _from_file(path / FILE, name) if (path / FILE).is_file() else _from_transformers(path, name)
    if name.startswith(("/", ".", "~")) or name.endswith((".json", gguf_file.SUFFIX)) or name.count("/") > 1:
        raise BadInput(FIELD, f"there is no file or folder {name}", f"give a {FILE}, its folder or a hub name")
    return _from_hub(name)


def _from_file(path: Path, name: str) -> Tokenizer:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(FIELD, f"{path} cannot be read ({error.strerror})", "make it readable") from error
    try:
        core = Core.from_buffer(content)
    except Exception as error:  # tokenizers raises the bare class
        problem = f"{path} is not a {FILE} ({first_line(error)})"
        raise BadInput(FIELD, problem, "give the one of the served model") from error
    return Tokenizer(core, name, hashlib.sha256(content).hexdigest(), path.parent)


def _from_gguf(path: Path, name: str) -> Tokenizer:
    inside = gguf_file.read(path, FIELD)
    return Tokenizer(inside.core, name, hashlib.sha256(inside.core.to_str().encode()).hexdigest(), inside=inside)


def _from_transformers(folder: Path, name: str) -> Tokenizer:
    from transformers import AutoTokenizer

    try:
        core: Core = AutoTokenizer.from_pretrained(str(folder), local_files_only=True).backend_tokenizer
    except Exception as error:  # its errors have no common class
        problem = f"{name} has no {FILE}, and transformers cannot make one ({first_line(error)})"
        raise BadInput(FIELD, problem, f"give a {FILE} of the served model") from error
    return Tokenizer(core, name, hashlib.sha256(core.to_str().encode()).hexdigest(), folder)


def _from_hub(name: str) -> Tokenizer:
    """Take the file from the hub's cache on this machine if it is there, else from the hub."""
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    remedy = f"give the path of the served model's {FILE}, or a name as the hub spells it"
    try:
        return _from_file(Path(hf_hub_download(name, FILE, local_files_only=True)), name)
    except HFValidationError as error:
        raise BadInput(FIELD, f"{name!r} is neither a path nor a hub name", remedy) from error
    except LocalEntryNotFoundError as error:
        if constants.HF_HUB_OFFLINE or not resolves(constants.ENDPOINT):
            problem = f"{name} is no path, not in the hub's cache, and the hub cannot be reached"
            files = f"give the path of a copy of the served model's {FILE}, or of its .gguf file"
            raise BadInput(FIELD, problem, f"{files} (pip install gguf)") from error
    try:
        path = Path(hf_hub_download(name, FILE))
    except (OSError, ValueError) as error:
        raise BadInput(FIELD, f"the hub does not give {name} ({first_line(error)})", remedy) from error
    for beside in TEMPLATES:
        with contextlib.suppress(OSError, ValueError):  # not every model has one
            hf_hub_download(name, beside)
    return _from_file(path, name)


def resolves(url: str) -> bool:
    """Whether the host has an address: without one the hub's client would try for 23 s before it says so."""
    if getproxies():
        return True
    try:
        return bool(socket.getaddrinfo(urlsplit(url).hostname, None))
    except OSError:
        return False


def first_line(error: Exception) -> str:
    """What a library has to say, without the rest of its lines."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
