"""YAML as people write it: 30:50 is a range of lengths, and not the number 1850."""

import re
from typing import Any

BOOL, INT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:int"


def loader(text: Any, *, on_is_a_word: bool = False) -> Any:
    """A loader of PyYAML's safe kind, without numbers to base 60; yaml is imported here, since that takes a while.

    Args:
        text: As PyYAML takes it: text, bytes or a file.
        on_is_a_word: Whether yes, no, on and off are words, as in YAML 1.2, and not true or false.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """Without numbers to base 60."""

    def whole(loader: Loader, node: yaml.ScalarNode) -> object:
        return node.value if ":" in node.value else loader.construct_yaml_int(node)

    Loader.add_constructor(INT, whole)
    if on_is_a_word:
        Loader.yaml_implicit_resolvers = {
            first: [(tag, form) for tag, form in forms if tag != BOOL]
            for first, forms in Loader.yaml_implicit_resolvers.items()
        }
        Loader.add_implicit_resolver(BOOL, re.compile("(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
    return Loader(text)
