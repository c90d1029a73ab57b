"""`PrefixRepetitionDataset`: prompts that begin with one of a few long prefixes, like the
requests of a service.
"""

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import setting
from loadgen.workload.datasets.lengths import Lengths
from loadgen.workload.datasets.multi_turn import MultiTurnDataset
from loadgen.workload.datasets.prefix_groups import PrefixGroups
from loadgen.workload.datasets.random_words import RandomDataset
from loadgen.workload.tokenizer.random_text import RandomText

SUFFIX_LEN, OUTPUT_LEN = setting.prefix_repetition_suffix_len, setting.prefix_repetition_output_len


class PrefixRepetitionDataset:
    """The class of this data set, whose prompts are those of `RandomDataset`, or sessions of them.

    Groups are equal up to one prompt, unless `--prefix-buckets` or `--prefix-zipf` says how unequal
    they are. `vllm bench serve` drops the remainder of the division by the number of prefixes; here
    all prompts are sent.
    """

    @classmethod
    def from_settings(cls, settings: RunSettings) -> RandomDataset | MultiTurnDataset:
        """Create the data set from `--tokenizer`, the `--prefix-repetition-*` fields and the seeds.

        Raises:
            BadInput: The suffix has no room for special tokens, or the tokenizer cannot be loaded
                or has too few words.
        """
        drawing = RandomText.of(settings)
        suffix = settings.prefix_repetition_suffix_len
        words = RandomDataset(
            drawing=drawing,
            inputs=Lengths.parse(SUFFIX_LEN, suffix, less=drawing.tokenizer.special_tokens),
            outputs=Lengths.parse(OUTPUT_LEN, settings.prefix_repetition_output_len),
            seed_order=seed_of(settings, "order"),
            prefixes=PrefixGroups.from_settings(settings),
            name=settings.dataset_name,
            input_flag=SUFFIX_LEN,
            shuffled=not settings.disable_shuffle,
        )
        return words if settings.turns in (None, "1") else MultiTurnDataset.of(words, settings)
