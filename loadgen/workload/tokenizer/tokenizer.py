"""`Tokenizer`, a thin wrapper of Hugging Face's `tokenizers`, and loading it from a file, a
folder or the hub.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.config.data import BUILT_IN_TOKENIZER, NO_TOKENIZER, TIKTOKEN
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, first_line, setting
from loadgen.workload.files import cache, hub

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Core

    from loadgen.workload.tokenizer.gguf_file import GgufTokenizer

TOKENIZER = setting.tokenizer
FILE = "tokenizer.json"
VERSION = 1  # of the cached sizes
GGUF = ".gguf"
CONFIG = "tokenizer_config.json"  # every tokenizer that only transformers can read has one
# Files that transformers makes a tokenizer of.
VOCABULARIES = ("*vocab*.json", "vocab.txt", "merges.txt", "*.model", "*.tiktoken")
TEMPLATES = ("chat_template.jinja", CONFIG)  # files that may contain the chat template


class Tokenizer:
    """Counts, encodes and decodes text as a server with the same tokenizer.json does.

    Batches are encoded on all cores, or on one where the environment says
    TOKENIZERS_PARALLELISM=false. A file is parsed when a text is first counted: it takes half a
    second, and a run of random words needs none.

    Args:
        parse: Makes the tokenizer of `tokenizers`.
        name: As the attribute.
        sha256: As the attribute.
        folder: As the attribute.
        gguf: As the attribute.

    Attributes:
        name: The path or hub name that the user gave.
        sha256: Hash of its tokenizer.json, in hex.
        special_tokens: Tokens that it adds to a single text (such as a beginning-of-sequence
            token).
        size: Tokens in the vocabulary, with added tokens.
        own_size: Tokens in the vocabulary, without added tokens.
        folder: The folder of its file; None if there is no file.
        gguf: The content of its GGUF file; None if it is from another file.
    """

    def __init__(
        self,
        parse: "Callable[[], Core]",
        name: str,
        sha256: str,
        folder: Path | None = None,
        gguf: "GgufTokenizer | None" = None,
    ) -> None:
        self._parse = parse
        self.name = name
        self.sha256 = sha256
        self.folder = folder
        self.gguf = gguf
        sizes = cache.get_or_make_fact("sizes", sha256, [VERSION], self._sizes)
        self.special_tokens, self.size, self.own_size = sizes

    def _sizes(self) -> list[int]:
        core = self._core
        return [
            core.num_special_tokens_to_add(False),
            core.get_vocab_size(),
            core.get_vocab_size(with_added_tokens=False),
        ]

    @cached_property
    def _core(self) -> "Core":
        core = self._parse()
        # some files truncate at 512 tokens, so that every long text would count 512
        core.no_truncation()
        core.no_padding()
        return core

    def __repr__(self) -> str:
        return f"<Tokenizer {self.name} {self.size} tokens>"

    def provenance(self) -> dict[str, Any]:
        """Return name and hash for the provenance of a data set, as JSON."""
        return {"tokenizer": self.name, "tokenizer_sha256": self.sha256}

    def count(self, texts: Sequence[str], *, special: bool = False) -> list[int]:
        """Count the tokens of each text; with `special`, including the special tokens that are
        added.
        """
        return [
            len(encoding)
            for encoding in self._core.encode_batch_fast(texts, add_special_tokens=special)
        ]

    def encode_batch(self, texts: Sequence[str], *, special: bool = False) -> list[list[int]]:
        """Return the ids of each text; with `special`, including the special tokens that are
        added.
        """
        return [
            encoding.ids
            for encoding in self._core.encode_batch_fast(texts, add_special_tokens=special)
        ]

    def ends(self, texts: Sequence[str]) -> list[list[int]]:
        """Return for each text the character offsets of the ends of its tokens, without special
        tokens.
        """
        batch = self._core.encode_batch(texts, add_special_tokens=False)
        return [[end for _, end in encoding.offsets] for encoding in batch]

    def decode_batch(self, rows: Sequence[Sequence[int]], *, special: bool = True) -> list[str]:
        """Return the text of each row of ids, with special tokens unless `special` is false."""
        return self._core.decode_batch(rows, skip_special_tokens=not special)

    def token(self, number: int) -> str:
        """Return a token as the vocabulary spells it (a space may be "Ġ" or "▁"); "" for an
        unused id.
        """
        return self._core.id_to_token(number) or ""

    def vocab(self) -> dict[str, int]:
        """Return all tokens as the vocabulary spells them, with their ids, without added tokens."""
        return self._core.get_vocab(with_added_tokens=False)

    def pieces(self, text: str) -> int | None:
        """Return the number of pieces from the pre-tokenizer; None if there is none."""
        if self._core.pre_tokenizer is None:
            return None
        normal = self._core.normalizer.normalize_str(text) if self._core.normalizer else text
        return len(self._core.pre_tokenizer.pre_tokenize_str(normal))


def tokenizer_name(settings: RunSettings) -> str | None:
    """Return the name of the tokenizer of a run, `--tokenizer` or `--model`; None if neither is
    given.
    """
    return settings.tokenizer or settings.model


def tokenizer_for(dataset: object, settings: RunSettings) -> Tokenizer:
    """Return the tokenizer of a data set; of one without, load that of the run: see
    `tokenizer_of`.
    """
    tokenizer = getattr(dataset, "tokenizer", None)
    return tokenizer if isinstance(tokenizer, Tokenizer) else tokenizer_of(settings)


def tokenizer_of(settings: RunSettings) -> Tokenizer:
    """Load the tokenizer of a run: `--tokenizer`, else that of `--model`.

    Raises:
        BadInput: Neither is given, it is "none", or `load` fails.
    """
    name = tokenizer_name(settings)
    if name == NO_TOKENIZER:
        problem = f"is {name}, and the data set {settings.dataset_name} needs a tokenizer"
        raise BadInput(
            TOKENIZER,
            problem,
            f"give one, or send ready prompts: {setting.dataset_name} jsonl, csv or custom",
        )
    if name is None:
        raise BadInput(
            TOKENIZER, f"is missing, and so is {setting.model}", f"give a {FILE} or a hub name"
        )
    return load(name)


class LazyTokenizer:
    """The tokenizer of ready prompts, loaded when it is first used.

    Attributes:
        absent: Whether --tokenizer is "none", or loadgen's own, which knows no text of a server.
    """

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        self.absent = settings.tokenizer in (NO_TOKENIZER, BUILT_IN_TOKENIZER)
        self._loaded: Tokenizer | None = None

    def __call__(self) -> Tokenizer:
        """Return the tokenizer, and load it at the first call.

        Raises:
            BadInput: As `tokenizer_of`.
        """
        if self._loaded is None:
            if self.absent:
                problem = f"is {self._settings.tokenizer}, which counts no tokens of ready texts"
                raise BadInput(TOKENIZER, problem, "name that of the model")
            try:
                self._loaded = tokenizer_of(self._settings)
            except BadInput as error:
                remedy = (
                    f"{error.texts[1]}; or give {TOKENIZER} {NO_TOKENIZER}: only the server "
                    "then counts tokens"
                )
                raise BadInput(error.path, error.texts[0], remedy) from error
        return self._loaded

    def provenance(self) -> dict[str, Any]:
        """Return name and hash as `Tokenizer.provenance`; both None if it was not used."""
        return (
            self._loaded.provenance()
            if self._loaded
            else {"tokenizer": None, "tokenizer_sha256": None}
        )


def tokenizer_file(settings: RunSettings) -> Path | None:
    """Return the local file that `tokenizer_of` would read; None if there is none on this
    machine.
    """
    name = tokenizer_name(settings)
    if name is None or name == NO_TOKENIZER:
        return None
    path = _built_in() if name == BUILT_IN_TOKENIZER else Path(os.path.expanduser(name))
    if path.is_dir():
        path = path / FILE
    if path.is_file():
        return path
    from huggingface_hub import try_to_load_from_cache

    try:
        cached = try_to_load_from_cache(name, FILE)
    except ValueError:
        return None
    return Path(cached) if isinstance(cached, str) else None


def load(name: str) -> Tokenizer:
    """Load a tokenizer from a tokenizer.json, a folder, a .gguf file, by its name on the hub, or
    an encoding of tiktoken.

    A tokenizer.json is read as it is. Only a folder, or a model of the hub, without one needs
    `transformers`, which is slow to import and replaces parts of some tokenizers.

    Raises:
        BadInput: The file or folder does not exist, is not a tokenizer, or the hub does not have
            it.
    """
    if name == BUILT_IN_TOKENIZER:
        return _from_file(_built_in(), name)
    if name.startswith(TIKTOKEN):
        return _from_tiktoken(name)
    path = checked_path(name)
    if path is None:
        return _from_hub(name)
    if path.is_file() and path.suffix == GGUF:
        from loadgen.workload.tokenizer import gguf_file

        gguf = gguf_file.read(path, TOKENIZER)
        return Tokenizer(
            lambda: gguf.core,
            name,
            hashlib.sha256(gguf.core.to_str().encode()).hexdigest(),
            gguf=gguf,
        )
    if path.is_file():
        return _from_file(path, name)
    return (
        _from_file(path / FILE, name) if (path / FILE).is_file() else _from_transformers(path, name)
    )


def is_available(name: str) -> bool:
    """Return whether a tokenizer can be had: its file is here, or the hub gives it."""
    try:
        return checked_path(name) is not None or bool(_from_hub(name))
    except BadInput:
        return False


def of_openai(model: str) -> str | None:
    """Return the value of --tokenizer for a model of OpenAI's, as `tiktoken_encoding.of_model`."""
    from loadgen.workload.tokenizer import tiktoken_encoding

    return tiktoken_encoding.of_model(model)


def _built_in() -> Path:
    """Return the tokenizer.json that loadgen brings along, that of its simulator."""
    from loadgen.engines import sim

    return Path(sim.__path__[0]) / FILE


def checked_path(name: str) -> Path | None:
    """Return the file or folder that a tokenizer is read from; None for a name on the hub.

    Raises:
        BadInput: The name is a path, and there is no file or folder.
    """
    path = Path(os.path.expanduser(name))
    if path.is_file() or path.is_dir():
        return path
    remedy = f"give a {FILE}, its folder or a hub name"
    if path.exists():
        raise BadInput(TOKENIZER, f"{name} is neither a file nor a folder", remedy)
    if name.startswith(("/", ".", "~")) or name.endswith((".json", GGUF)) or name.count("/") > 1:
        raise BadInput(TOKENIZER, f"file or folder {name} does not exist", remedy)
    return None


def _from_file(path: Path, name: str) -> Tokenizer:
    try:
        sha256 = cache.file_sha256(path)
    except OSError as error:
        raise BadInput(
            TOKENIZER, f"{path} cannot be read ({error.strerror})", "make it readable"
        ) from error

    def parse() -> "Core":
        from tokenizers import Tokenizer as Core

        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise BadInput(
                TOKENIZER, f"{path} changes while it is read", "wait until it is complete"
            )
        try:
            return Core.from_buffer(content)
        except Exception as error:  # tokenizers raises the bare class
            problem = f"{path} is not a {FILE} ({first_line(error)})"
            raise BadInput(TOKENIZER, problem, "give that of the served model") from error

    return Tokenizer(parse, name, sha256, path.parent)


def _from_tiktoken(name: str) -> Tokenizer:
    from tokenizers import Tokenizer as Core

    from loadgen.workload.tokenizer import tiktoken_encoding

    content = tiktoken_encoding.tokenizer_json(name)
    return Tokenizer(lambda: Core.from_buffer(content), name, hashlib.sha256(content).hexdigest())


def _from_transformers(folder: Path, name: str) -> Tokenizer:
    from transformers import AutoTokenizer

    try:
        core = AutoTokenizer.from_pretrained(str(folder), local_files_only=True).backend_tokenizer
    except Exception as error:  # its errors have no common class
        problem = f"{name} has no {FILE}, and transformers cannot load it ({first_line(error)})"
        raise BadInput(TOKENIZER, problem, f"give a {FILE} of the served model") from error
    return Tokenizer(lambda: core, name, hashlib.sha256(core.to_str().encode()).hexdigest(), folder)


def _from_hub(name: str) -> Tokenizer:
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    remedy = f"give the path of the served model's {FILE}, or a name as the hub spells it"
    try:
        return _from_file(Path(hf_hub_download(name, FILE, local_files_only=True)), name)
    except HFValidationError as error:
        raise BadInput(TOKENIZER, f"invalid path or hub name {name!r}", remedy) from error
    except LocalEntryNotFoundError as error:
        absent = error
    if (trouble := hub.why_unavailable()) is None:
        try:
            return _fetched(name)
        except LocalEntryNotFoundError as error:  # it does not answer any more
            absent, trouble = error, first_line(error)
        except (OSError, ValueError) as error:
            raise BadInput(
                TOKENIZER, f"the hub does not have {name} ({first_line(error)})", remedy
            ) from error
    config = try_to_load_from_cache(name, CONFIG)
    if isinstance(config, str):
        folder = Path(config).parent
        if any(any(folder.glob(pattern)) for pattern in VOCABULARIES):
            return _from_transformers(folder, name)
    problem = (
        f"{name} is not a path, not in the cache of the hub, and the hub cannot be reached "
        f"({trouble})"
    )
    files = f"give the path of a copy of the served model's {FILE}, or of its .gguf file"
    raise BadInput(TOKENIZER, problem, f"{files} (pip install gguf)") from absent


def _fetched(name: str) -> Tokenizer:
    """Load a tokenizer from the hub, into its cache.

    Raises:
        OSError, ValueError: The hub does not have it; LocalEntryNotFoundError: it did not answer.
    """
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    try:
        path = Path(hf_hub_download(name, FILE))
    except LocalEntryNotFoundError:
        raise
    except EntryNotFoundError:  # the hub has the model, and no such file of it
        patterns = [CONFIG, "config.json", *VOCABULARIES, "*.jinja"]
        return _from_transformers(Path(snapshot_download(name, allow_patterns=patterns)), name)
    for beside in TEMPLATES:
        with contextlib.suppress(OSError, ValueError):  # not every model has one
            hf_hub_download(name, beside)
    return _from_file(path, name)
