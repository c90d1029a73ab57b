"""A safe YAML loader without numbers to base 60: 30:50 is a range of lengths, not the number
1850.
"""

import re
from typing import Any

BOOL, INT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:int"


def loader(text: Any, *, on_is_a_word: bool = False) -> Any:
    """Create a loader like `yaml.SafeLoader`, without numbers to base 60.

    Args:
        text: The input of PyYAML: text, bytes or a file.
        on_is_a_word: Whether yes, no, on and off are strings as in YAML 1.2, not booleans.
    """
    import yaml  # slow to import

    class Loader(yaml.SafeLoader):
        """Reads numbers to base 60 as strings."""

    def construct_int(loader: Loader, node: yaml.ScalarNode) -> object:
        return node.value if ":" in node.value else loader.construct_yaml_int(node)

    Loader.add_constructor(INT, construct_int)
    if on_is_a_word:
        Loader.yaml_implicit_resolvers = {
            first: [(tag, form) for tag, form in forms if tag != BOOL]
            for first, forms in Loader.yaml_implicit_resolvers.items()
        }
        Loader.add_implicit_resolver(
            BOOL, re.compile("(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
        )
    return Loader(text)
