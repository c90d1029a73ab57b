"""Published pages, imported and reported with the true percentages.

The numbers are worked out by hand from the blocks of the pages; what a page printed instead stands
beside them.
"""

from pathlib import Path

import pytest

from tests.helpers import imported_files
from tests.helpers.study_reports import written

SUSPECT = '<br><span style="background-color:lightcoral;">SUSPECT</span>'


@pytest.mark.integration
@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        (
            "qwen3-14b-h100",
            [
                "python3 -m sglang.launch_server --model-path Qwen/Qwen3-14B-FP8",
                "+27.42% (single runs)",  # 8403.97 / 6595.66 - 1; printed +27.7%
                "+24.06% (single runs)",  # 10426.27 / 8403.97 - 1; printed +23.8%
                f"| **short** | Total TPS: 5796.73{SUSPECT}<br>Mean TPOT(ms): 525.31 | Total TPS: "
                f"16884.75 (+191.28%; single runs){SUSPECT}",
            ],
        ),
        (
            "qwen3-32b-a100",
            # 7,880 and 7,699 tokens; printed -13.8%
            ["(-12.13%; single runs; answers 2.4% longer)"],
        ),
        (
            "qwen3.5-9b-h100",
            [
                "(+9.97%; single runs)",  # of tokens by duration; printed +15.59%
                "(-0.01%; single runs)",  # likewise; printed +1.74%
                "`mtp 4` is not considered: success rate 51.4%",
                "Mean TPOT(ms): n/a",  # what was printed is TTFT / output tokens
                "#### max_batched_tokens=49152 max_seqs=768",
            ],
        ),
    ],
)
def test_a_published_page_has_the_right_percentages(
    page: str, wanted: list[str], tmp_path: Path
) -> None:
    text = written(imported_files.page(page).findings, tmp_path, {"source": "import"})[f"{page}.md"]
    assert '!!! warning "Published results"' in text
    assert [each for each in wanted if each not in text] == []
