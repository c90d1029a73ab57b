"""Copies: results of one file that stand in another one, too."""

import itertools
from collections.abc import Mapping, Sequence

from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.published import Published


def copies(files: Mapping[str, Sequence[Published]]) -> Findings:
    """No two files have one and the same run; a file that was given twice is one."""
    for (first, own), (_, others) in itertools.combinations(files.items(), 2):
        for result in others:
            found = next((each for each in own if each.same_run(result)), None)
            if found is not None:
                total = result.get("total_per_s") or result.get("output_per_s")
                where = f"{first}:{found.place.line}"
                why = f"every number is that of {where}, digit by digit: one of the two was not measured"
                says = f"{result.title or 'result'}: total {total} tok/s"
                yield Finding(result.place, "copied", says, "", why, cause=first)
