"""Blocks of a page are classified by their fences and the comments above them."""

from pathlib import Path

import pytest

from tests.slow.docs.blocks import NoBlock, blocks


def page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


def test_a_block_has_a_language_a_line_and_its_text(tmp_path: Path) -> None:
    (block,) = blocks(page(tmp_path, "# Title\n\n```bash\nloadgen run \\\n    --rate 3\n```\n"))
    assert (block.language, block.line, block.text, block.marks) == (
        "bash",
        3,
        "loadgen run \\\n    --rate 3\n",
        {},
    )


def test_comments_in_front_of_a_block_are_its_marks(tmp_path: Path) -> None:
    text = (
        "<!-- needs: accelerator hub -->\n<!-- background -->\n```bash\nx\n```\n\n```bash\ny\n```\n"
    )
    first, second = blocks(page(tmp_path, text))
    assert first.marks == {"needs": "accelerator hub", "background": ""}
    assert second.marks == {}


def test_a_block_inside_a_list_loses_its_indentation(tmp_path: Path) -> None:
    (block,) = blocks(page(tmp_path, "1. First:\n\n    ```yaml\n    a:\n      b\n    ```\n"))
    assert block.text == "a:\n  b\n"


def test_text_that_is_indented_inside_a_list_or_a_box_is_no_block(tmp_path: Path) -> None:
    assert (
        blocks(page(tmp_path, "- first\n\n    goes on\n\n!!! note\n\n    boxed\n\n## End\n")) == []
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Text\n\n    loadgen run\n", ":3: an indented block"),
        ("```\nloadgen run\n```\n", ":1: no language; write one of bash"),
        ("```sh\nloadgen run\n```\n", ":1: sh; write one of bash"),
        ("```bash\nloadgen run\n", ":1: nothing ends this block"),
        ("<!-- wants: gpu -->\n```bash\nx\n```\n", ":1: 'wants' is no mark; write one of needs"),
        (
            "<!-- needs: luck -->\n```bash\nx\n```\n",
            ":2: needs ['luck']; write some of accelerator",
        ),
        ("<!-- needs -->\n```bash\nx\n```\n", ":2: needs nothing"),
        ("- a list\n\nText again\n\n    loadgen run\n", ":5: an indented block"),
    ],
)
def test_ambiguous_block_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(NoBlock) as refused:
        blocks(page(tmp_path, text))
    assert said in str(refused.value)
