"""Flags of vLLM's data set random-mm, as `--images` and `--image-sizes`."""

import ast
import json
import math
from typing import Any

from loadgen.cli.compat.tool_flags import Given, marked
from loadgen.config.data import RANDOM_IMAGES
from loadgen.config.option import SHARE, Range
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer, number

GIVEN = "_random_mm"  # a marker: values of the flags by name
BASE, RATIO = "--random-mm-base-items-per-request", "--random-mm-num-mm-items-range-ratio"
LIMIT, BUCKETS = "--random-mm-limit-mm-per-prompt", "--random-mm-bucket-config"
MAX_IMAGES = 255  # vLLM's default of the limit
BUCKET_FORM = 'write "{(HEIGHT, WIDTH, 1): SHARE, ...}"'
VIDEO = "loadgen sends images, and no video"


FLAGS = (
    marked(GIVEN, BASE, integer),
    marked(GIVEN, RATIO, number),
    marked(GIVEN, LIMIT),
    marked(GIVEN, BUCKETS),
)


def with_images(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the number and the sizes of images that the flags mean."""
    found = dict(settings)
    own: Given = found.get(GIVEN, {})
    if not own:
        return found
    if found.get("dataset_name") != RANDOM_IMAGES:
        problem = f"has no effect on the data set {found.get('dataset_name', 'random')}"
        raise BadInput(next(iter(own)), problem, f"leave it out, or use --dataset-name {RANDOM_IMAGES}")
    if own.keys() & {BASE, RATIO, LIMIT}:
        found["images"] = _count(own.get(BASE, 1), own.get(RATIO, 0.0), _limit(own.get(LIMIT)))
    if BUCKETS in own:
        found["image_sizes"] = _sizes(own[BUCKETS])
    return found


def _count(base: int, ratio: float, limit: int) -> str:
    Range("0 or more", 0).check(BASE, base)
    SHARE.check(RATIO, ratio)
    fewest, most = math.floor(base * (1 - ratio)), min(limit, math.ceil(base * (1 + ratio)))
    if fewest > most:
        raise BadInput(LIMIT, f"{limit} images are fewer than the {fewest} that each request has", f"lower {BASE}")
    return f"{fewest}:{most}"


def _limit(text: str | None) -> int:
    if text is None:
        return MAX_IMAGES
    try:
        limits = json.loads(text)
    except ValueError as error:
        raise BadInput(LIMIT, f"{text!r} is not valid JSON", "write for example '{\"image\": 3}'") from error
    most = limits.get("image") if isinstance(limits, dict) else None
    if type(most) is not int or most < 0:
        raise BadInput(LIMIT, f"{text} has no number of images", "write for example '{\"image\": 3}'")
    return most


def _sizes(text: str) -> str:
    """Return the sizes of buckets with their shares; those with a share of 0 are left out."""
    try:
        buckets = ast.literal_eval(text)
        shares = {_key(key): float(share) for key, share in buckets.items()}
    except (ValueError, SyntaxError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise BadInput(BUCKETS, f"invalid buckets {text!r}", BUCKET_FORM) from error
    sizes = []
    for (height, width, frames), share in shares.items():
        if share < 0:
            raise BadInput(BUCKETS, f"the share {share:g} is out of range", "give 0 or more")
        if share and frames != 1:
            raise BadInput(BUCKETS, f"{(height, width, frames)} is a video: {VIDEO}", "give buckets of one frame")
        if share:
            sizes.append(f"{height}x{width}:{share!r}")
    if not sizes:
        raise BadInput(BUCKETS, "no bucket has a share above 0", BUCKET_FORM)
    return ",".join(sizes)


def _key(key: object) -> tuple[int, int, int]:
    """Return height, width and frames of a bucket, which may be written as a text."""
    found = ast.literal_eval(key) if isinstance(key, str) else key
    if not (isinstance(found, tuple) and len(found) == 3 and all(type(side) is int and side > 0 for side in found)):
        raise ValueError(key)
    return found
