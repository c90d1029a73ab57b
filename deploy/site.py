"""The site of docs/: `python -m deploy.site` builds it into build/site, as `make docs` does.

The pages are in a folder named after the version, so that sites of several versions can be put
into one place: publish build/site over what is there, and keep the line of each older version in
versions.json, from which readers choose. llms.txt lists the pages as Markdown for language models
(https://llmstxt.org).
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from loadgen.version import __version__

ROOT = Path(__file__).parents[1]
VERSION = ".".join(__version__.split(".")[:2])
FORWARD = f'<!doctype html><meta http-equiv="refresh" content="0; url={VERSION}/">\n'


def llms_txt(index: str) -> str:
    """What loadgen is and which pages there are, of docs/index.md.

    Args:
        index: The text of the page.
    """
    title, summary, _ = index.split("\n\n", 2)
    lists = re.findall(r"^## .+\n\n(?:- .+\n(?:  .+\n)*)+", index, re.MULTILINE)
    pages = re.sub(r"\n  ", " ", "\n".join(lists)).replace("](", f"]({VERSION}/")
    return f"{title}\n\n> {' '.join(summary.split())}\n\n{pages}"


def build(source: Path, output: Path) -> None:
    """Build the site.

    Args:
        source: The folder of mkdocs.yml and docs/.
        output: The folder to write, which is emptied before.

    Raises:
        subprocess.CalledProcessError: Zensical failed, or had something to warn of.
    """
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    subprocess.run(command, cwd=source, check=True)
    pages = output / VERSION
    shutil.move(source / "build/pages", pages)
    for page in (source / "docs").rglob("*.md"):
        shutil.copy(page, pages / page.relative_to(source / "docs"))
    versions = [{"version": VERSION, "title": VERSION, "aliases": ["latest"]}]
    (output / "versions.json").write_text(json.dumps(versions))
    (output / "index.html").write_text(FORWARD)
    (output / "llms.txt").write_text(llms_txt((source / "docs/index.md").read_text()))


if __name__ == "__main__":
    build(ROOT, ROOT / "build/site")
