"""The files of the package that docs/add-endpoint.md shows."""

import re

from tests.helpers.source import ROOT

GUIDE = ROOT / "docs/add-endpoint.md"
BLOCKS = dict(
    re.findall(
        r"^`([\w.]+)`[^\n]*:\n\n<!-- [^\n]* -->\n```\w+\n(.*?)^```",
        GUIDE.read_text(),
        re.MULTILINE | re.DOTALL,
    )
)
