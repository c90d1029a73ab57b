"""SGLang's flags of images, and their defaults."""

from typing import Any

from loadgen.cli.compat.tool_flags import renamed, switch
from loadgen.util.argument_parser import integer

SIDES = {"4k": "2160x3840", "1080p": "1080x1920", "720p": "720x1280", "360p": "360x640"}  # height and width
ANY_COUNT = "_random_image_count"
DEFAULTS: dict[str, Any] = {
    "images": 1,
    "image_sizes": SIDES["1080p"],
    "image_format": "jpeg:85",
    "image_position": "first",
}


def applied(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the number of images that --random-image-count means."""
    return settings | ({"images": f"1:{settings.get('images', 1)}"} if settings.get(ANY_COUNT) else {})


def _sizes(resolution: str) -> str:
    """Return the sizes of images; names of resolutions may be the bounds of a range, too."""
    text = resolution.strip().lower().removeprefix("random:")
    return "-".join(SIDES.get(side, side) for side in text.split("-", 1))


def _format(value: str) -> str:
    return DEFAULTS["image_format"] if value.lower() in ("jpeg", "jpg") else value.lower()


FLAGS = (
    renamed("--image-count", "images", integer),
    switch("--random-image-count", {ANY_COUNT: True}),
    renamed("--image-resolution", "image_sizes", _sizes),
    renamed("--image-format", "image_format", _format),
)
