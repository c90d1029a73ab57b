"""Small tokenizers of every family, trained on this project's own documents in less than a second,
or made by hand.

Every function writes a tokenizer.json into the folder it is given and returns its path.
"""

import itertools
from pathlib import Path

from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from tests.helpers.source import ROOT

DOCUMENTS = ROOT / "docs"
UNIGRAM_STEP = 8  # of all lines Unigram learns for 7 s of CPU time, of every eighth for 0.3 s
# Every word of the superword tokenizer has a token together with each of 40 others.
STEPS = range(3, 43)


def text() -> list[str]:
    """Return the lines of the project's documents."""
    return [
        line.strip()
        for file in sorted(DOCUMENTS.glob("*.md"))
        for line in file.read_text("utf-8").splitlines()
    ]


def wordpiece(folder: Path) -> Path:
    """WordPiece as in BERT: lower case, `##` for what goes on, `[CLS]` and `[SEP]` around a
    text.
    """
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=4000, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(text(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    return _saved(tokenizer, folder, "wordpiece")


def unigram(folder: Path) -> Path:
    """Unigram as in T5: `▁` before every word, and a file that asks for texts to be cut at 32
    tokens and padded.
    """
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<unk>", "<pad>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=3000, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(text()[::UNIGRAM_STEP], trainer)
    tokenizer.enable_truncation(32)
    tokenizer.enable_padding(length=32, pad_id=1, pad_token="<pad>")
    return _saved(tokenizer, folder, "unigram")


def word_level(folder: Path, size: int = 4000) -> Path:
    """WordLevel: one token a word, and nothing that marks the space before it."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordLevelTrainer(
        vocab_size=size, special_tokens=["[UNK]"], show_progress=False
    )
    tokenizer.train_from_iterator(text(), trainer)
    return _saved(tokenizer, folder, "word_level")


def superwords(folder: Path) -> Path:
    """Unigram over whole texts with tokens that span two words: two words next to each other are
    often one token.
    """
    words = ["".join(letters) for letters in itertools.product("bdfg", "aeiou", "lmnr", "aeiou")]
    alone = [(f"▁{word}", -10.0) for word in words]
    pairs = [
        (f"▁{word}▁{words[(at + 1) * step % len(words)]}", -11.0)
        for step in STEPS
        for at, word in enumerate(words)
    ]
    letters = [(letter, -20.0) for letter in "▁abdefgilmnoru"]
    tokenizer = Tokenizer(
        models.Unigram([("<unk>", -30.0), *letters, *alone, *dict(pairs).items()], unk_id=0)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    tokenizer.decoder = decoders.Metaspace()
    return _saved(tokenizer, folder, "superwords")


def _saved(tokenizer: Tokenizer, folder: Path, name: str) -> Path:
    path = folder / name / "tokenizer.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path), pretty=False)
    return path


def with_template(folder: Path) -> Path:
    """Write a tokenizer with a chat template into a folder, which is returned."""
    (folder / "tokenizer.json").write_bytes(unigram(folder).read_bytes())
    (folder / "chat_template.jinja").write_text("<|user|>{{ messages[0].content }}<|end|>")
    return folder
