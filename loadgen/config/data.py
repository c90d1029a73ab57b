"""Settings of the data set: which prompts are sent."""

import json
from typing import Literal

from loadgen.config.option import (
    ABOVE_0,
    COMPAT,
    DATA,
    EVERYDAY,
    FIRST,
    FROM_1,
    SECONDS,
    TOKENS,
    TOKENS_FROM_0,
    Form,
    Range,
    options_about,
    settings_class,
)
from loadgen.config.user_behavior import ThinkTime
from loadgen.errors import BadInput, setting
from loadgen.util.number_format import parse_share

Rule = Literal["vllm-0.11", "vllm-0.9", "guidellm-0.5", "benchmark-runner", "sglang"]
# Rules of tools that ask the server to ignore EOS.
FULL_LENGTH: tuple[Rule, ...] = ("guidellm-0.5", "benchmark-runner")
TRACE = "trace"  # the data set with a due time for each request
AGENTIC = "agentic"  # a data set of recorded sessions of agents
NO_TOKENIZER = (
    "none"  # value of --tokenizer: prompts are sent as they are, and only the server counts tokens
)
BUILT_IN_TOKENIZER = "built-in"  # value of --tokenizer: loadgen's own, so lengths are approximate
TIKTOKEN = "tiktoken:"  # before the name of an encoding, in a value of --tokenizer
RERANK = "random-rerank"  # a data set of a query with documents
BATCHED = ("random", RERANK)  # data sets of which a request may have several texts
RANDOM_IMAGES = "random-mm"  # a data set of texts with images
CUSTOM_IMAGE = "custom_image"  # rows with images
FULL_ANSWERS = ("random", RANDOM_IMAGES)  # data sets whose answers have their full length
HUB = ("hf", "spec_bench", "speed_bench")  # data sets of the hub
MULTI_TURN = "multi_turn"  # a data set of sessions for any --turns
PREFIX_REPETITION = (
    "prefix_repetition"  # a data set whose prompts, or sessions, begin with one of a few prefixes
)
MAX_ZIPF = 100.0  # the first prefix then has all requests
RANGE_RATIO = setting.random_range_ratio
RANGE_RATIO_REMEDY = 'give a number from 0 to below 1, or {"input": r, "output": r}'
data_option = options_about(DATA)


def parse_ratios(text: str) -> tuple[float, float]:
    """Parse `--random-range-ratio`, and return the ratios of prompts and answers.

    Raises:
        BadInput: It is neither a number nor an object with exactly `input` and `output`, or a ratio
            is not in [0, 1).
    """
    try:
        values = (
            json.loads(text) if text.lstrip().startswith("{") else {"input": text, "output": text}
        )
        ratios = {key: parse_share(str(ratio)) for key, ratio in values.items()}
    except (ValueError, TypeError) as error:
        raise BadInput(RANGE_RATIO, f"invalid ratio {text!r}", RANGE_RATIO_REMEDY) from error
    if ratios.keys() != {"input", "output"} or not all(0 <= ratio < 1 for ratio in ratios.values()):
        raise BadInput(RANGE_RATIO, f"{text} is not in range", RANGE_RATIO_REMEDY)
    return ratios["input"], ratios["output"]


@settings_class
class DataSettings:
    """Fields of the data set, with the names and meanings of `vllm bench serve`.

    Lengths are tokens.
    """

    workload: str | None = data_option(
        None,
        "name of a preset, or YAML profile; other flags override it",
        metavar="NAME|FILE",
        instead="write RunSettings.of_workload(NAME), and replace() what differs",
        tier=EVERYDAY,
    )
    dataset_name: str = data_option(
        "random",
        "name of the data set; random, random-mm, random-rerank, prefix_repetition, multi_turn, "
        "sharegpt, trace, agentic, prose, sonnet, jsonl, csv, text, custom, custom_image, hf, "
        "spec_bench, speed_bench, or one of an installed package",
        metavar="NAME",
        tier=FIRST,
    )
    dataset_path: str | None = data_option(
        None,
        "file of the data set; for hf, its name on the Hugging Face hub",
        metavar="FILE|NAME",
        tier=FIRST,
    )
    dataset_rule: Rule | None = data_option(
        None,
        "make prompts by the rule of another tool, to compare with its published results (the "
        "data set's own rule)",
    )
    dataset_arg: tuple[str, ...] = data_option(
        (),
        "options of a data set that an installed package adds",
        metavar="NAME=VALUE",
        form=Form(".*=.*", "{!r} has no value", "write NAME=VALUE"),
    )
    random_input_len: int | str = data_option(
        1024,
        "tokens in a random prompt; a number, 900:1100, normal:MEAN:STDEV[:MIN:MAX], "
        "lognormal:..., clipped:MEAN:STDEV:MIN:MAX, a list such as 10,20, or @FILE with a list",
        metavar="TOKENS",
        tier=FIRST,
        range=TOKENS,
    )
    random_output_len: int | str = data_option(
        128,
        "maximum tokens of each answer; in the same forms as --random-input-len",
        metavar="TOKENS",
        tier=FIRST,
        range=TOKENS,
    )
    random_range_ratio: str = data_option(
        "0.0",
        'draw lengths given as one number from [len*(1-r), len*(1+r)]; R or {"input": r, '
        '"output": r}; unlike the flag '
        "of SGLang, which means [len*r, len]",
        metavar="R",
        tier=COMPAT,
    )
    random_prefix_len: int = data_option(
        0,
        "tokens in a prefix that all prompts of random, multi_turn and prefix_repetition share; "
        "prefixes of groups follow it",
        metavar="TOKENS",
        tier=EVERYDAY,
        range=TOKENS_FROM_0,
    )
    random_batch_size: int = data_option(
        1,
        "random texts in each request of embeddings, pooling or rerank; --num-prompts then counts "
        "the texts",
        metavar="N",
        range=FROM_1,
    )
    no_reranker: bool = data_option(
        False,
        "with random-rerank: for a model that embeds query and documents separately; each then "
        "has the whole length",
        tier=COMPAT,
    )
    input_len_counts: Literal["raw", "server"] = data_option(
        "raw",
        "what a length of random, prefix_repetition and prose counts: the tokens of the text alone "
        "(raw), or all tokens that the server counts, with its chat template (server)",
    )
    images: int | str = data_option(
        1,
        "number of images in a prompt of random-mm, or MIN:MAX",
        metavar="N|MIN:MAX",
        tier=EVERYDAY,
    )
    image_sizes: str = data_option(
        "256x256,720x1280",
        "sizes of images in pixels: HEIGHTxWIDTH, a range such as 256x256-1024x1024, or several, "
        "each with :SHARE if they are not equally frequent",
        metavar="SIZES",
    )
    image_format: str = data_option(
        "jpeg",
        "format of images: png, jpeg or jpeg:QUALITY; jpeg needs the package pillow",
        metavar="FORMAT",
    )
    image_content: Literal["random", "blank"] = data_option(
        "random", "pixels of images: random colors, or white"
    )
    image_position: Literal["first", "last"] = data_option(
        "last", "position of the images in a message: before the text, or after it"
    )
    sharegpt_output_len: int | None = data_option(
        None,
        "maximum tokens of each answer (the length of the recorded answer)",
        metavar="TOKENS",
        tier=COMPAT,
        range=TOKENS,
    )
    sharegpt_input_len: str | None = data_option(
        None,
        "tokens of the questions that --dataset-rule benchmark-runner sends",
        metavar="MIN:MAX",
    )
    turns: str | None = data_option(
        None,
        "turns of a session: a number, MIN:MAX or normal:MEAN:STDEV[:MIN:MAX] with multi_turn and "
        "prefix_repetition, or all of a conversation of sharegpt, jsonl and csv (multi_turn 3, "
        "others 1)",
        metavar="N|MIN:MAX|all",
        tier=EVERYDAY,
    )
    prefix_buckets: str | None = data_option(
        None,
        "prefixes of multi_turn (its system messages) and prefix_repetition: how many, of how many "
        "tokens, and how often each kind is drawn",
        metavar="COUNTxTOKENS:WEIGHT,...",
        listed=True,
    )
    prefix_zipf: float | None = data_option(
        None,
        "draw the prefixes of multi_turn and prefix_repetition by Zipf's law: prefix k has a share "
        "proportional to 1/k^ALPHA",
        metavar="ALPHA",
        range=Range(f"a number above 0, up to {MAX_ZIPF:g}", ABOVE_0, MAX_ZIPF),
    )
    think_time: str = data_option(
        "0",
        "seconds from the end of an answer to the next turn, or with --users to a user's next "
        "request: a number, MIN:MAX, exp:MEAN, normal:MEAN:STDEV or lognormal:MEAN:STDEV",
        metavar="SECONDS",
        parse=ThinkTime.parse,
        tier=EVERYDAY,
    )
    history: Literal["real", "recorded"] = data_option(
        "real",
        "answers in the history of later turns: the server's (real), or the data set's (recorded)",
    )
    trace_format: Literal[
        "auto", "requests", "mooncake", "burstgpt", "azure", "weka", "mlperf", "tracelab", "otel"
    ] = data_option(
        "auto",
        "format of the file: requests, mooncake, burstgpt or azure for a trace; weka, mlperf, "
        "tracelab or otel for agents",
    )
    trace_column: tuple[str, ...] = data_option(
        (),
        "columns of a trace, if they have other names: time, input, output, blocks",
        metavar="FIELD=COLUMN",
    )
    trace_time_unit: float | None = data_option(
        None,
        "unit of the times in the trace, such as 1ms (depends on its format)",
        unit=SECONDS,
        range=Range("1e-9 to 1,000,000 seconds", 1e-9, 1e6),
    )
    trace_block_size: int = data_option(
        512, "tokens in a block that prompts of the trace share", metavar="TOKENS", range=TOKENS
    )
    trace_times: Literal["keep", "ignore"] = data_option(
        "keep", "send a trace at its own times, or ignore them and use --request-rate"
    )
    time_scale: float = data_option(
        1.0,
        "factor that speeds up a trace, and shortens the pauses of agents",
        metavar="FACTOR",
        range=Range("0.001 to 1,000,000", 1e-3, 1e6),
    )
    max_think_time: float | None = data_option(
        None,
        "longest pause before a call of an agent; longer ones are cut (as recorded)",
        unit=SECONDS,
        range=Range("0 to 1,000,000,000 seconds", 0, 1e9),
    )
    trajectory_start: str = data_option(
        "0",
        "skip this share of the calls at the beginning of each recorded session, as if it had "
        "begun before the run; MIN:MAX: a random share",
        metavar="SHARE|MIN:MAX",
    )
    prefix_repetition_prefix_len: int = data_option(
        256, "tokens in each repeated prefix", metavar="TOKENS", tier=COMPAT, range=TOKENS_FROM_0
    )
    prefix_repetition_suffix_len: int | str = data_option(
        256,
        "tokens after a repeated prefix; in the same forms as --random-input-len",
        metavar="TOKENS",
        tier=COMPAT,
        range=TOKENS,
    )
    prefix_repetition_num_prefixes: int = data_option(
        10, "number of repeated prefixes", metavar="N", tier=COMPAT, range=FROM_1
    )
    prefix_repetition_output_len: int | str = data_option(
        128,
        "maximum tokens of each answer; in the same forms as --random-input-len",
        metavar="TOKENS",
        tier=COMPAT,
        range=TOKENS,
    )
    sonnet_input_len: int = data_option(
        550, "tokens in a prompt of prose", metavar="TOKENS", tier=COMPAT, range=TOKENS
    )
    sonnet_output_len: int = data_option(
        150, "maximum tokens of each answer", metavar="TOKENS", tier=COMPAT, range=TOKENS
    )
    sonnet_prefix_len: int = data_option(
        200,
        "tokens in a prefix that all prompts of prose share",
        metavar="TOKENS",
        tier=COMPAT,
        range=TOKENS_FROM_0,
    )
    custom_output_len: int = data_option(
        256,
        "maximum tokens of each answer, for rows of jsonl, csv, text, custom, custom_image and "
        "agents' calls that have no length of their own (256; -1: all must have one)",
        metavar="TOKENS",
        tier=COMPAT,
        range=Range("1 token or more, or -1 if every row has output_tokens", 1, besides=-1),
    )
    custom_ensure_client_side_data: bool = data_option(
        False,
        "send the image files of custom_image in the requests; otherwise the server reads them "
        "from their paths",
        tier=COMPAT,
    )
    no_oversample: bool = data_option(
        False,
        "send no prompt of a file twice; if it has fewer prompts than --num-prompts, send fewer "
        "requests",
        tier=COMPAT,
    )
    distinct_prompts: int | None = data_option(
        None,
        "number of distinct prompts, which are sent again and again in their order, so that a "
        "prefix cache hits (as many as requests)",
        metavar="N",
        range=FROM_1,
    )
    disable_shuffle: bool = data_option(
        False,
        "send the rows of custom, custom_image, hf, spec_bench and speed_bench in the file's "
        "order, and those of prefix_repetition prefix by prefix",
    )
    hf_name: str | None = data_option(
        None,
        "name on the hub of a local copy (the last two folders of --dataset-path)",
        metavar="NAME",
    )
    hf_subset: str | None = data_option(
        None,
        "subset of a data set on the hub, or of speed_bench (the data set's own default)",
        metavar="NAME",
    )
    hf_split: str | None = data_option(
        None,
        "split of a data set on the hub (train; test for data sets that are tests)",
        metavar="NAME",
    )
    hf_where: tuple[str, ...] = data_option(
        (),
        "use only the records that meet all conditions: COLUMN=TEXT, COLUMN<=NUMBER or "
        "COLUMN>=NUMBER",
        metavar="CONDITION",
    )
    hf_output_len: int | None = data_option(
        None,
        "maximum tokens of each answer (the length of the recorded answer, or the data set's "
        "default)",
        metavar="TOKENS",
        tier=COMPAT,
        range=TOKENS,
    )
    hf_column: tuple[str, ...] = data_option(
        (),
        "columns of a data set on the hub (found by their names): prompt, messages, answer, ...",
        metavar="FIELD=COLUMN",
    )
    render_chat_template: Literal["whole", "without-bos"] | None = data_option(
        None,
        "put the model's chat template around each prompt before it is sent, for completions; "
        "without-bos leaves out its beginning-of-sequence token, which the server adds",
    )
    prompt_token_ids: bool = data_option(
        False, "send prompts as token ids instead of text, with completions and SGLang's /generate"
    )

    @property
    def dataset_options(self) -> dict[str, str]:
        """The values of --dataset-arg by name. The data set converts them."""
        pairs = (pair.partition("=") for pair in self.dataset_arg)
        return {name.replace("-", "_"): value for name, _, value in pairs}

    def requests_of(self, texts: int) -> int:
        """Return how many requests so many texts of --num-prompts are."""
        if self.dataset_name not in BATCHED:
            return texts
        queries = int(self.no_reranker and self.dataset_name == RERANK)  # it is one of the texts
        return -(-(texts - queries) // (self.random_batch_size - queries))

    @property
    def timed_by_data(self) -> bool:
        """Whether the number of requests at a time depends on the data set: sessions, or a
        trace.
        """
        return (
            self.keeps_trace_times
            or self.dataset_name in (AGENTIC, MULTI_TURN)
            or self.turns not in (None, "1")
        )

    @property
    def keeps_trace_times(self) -> bool:
        """Whether requests are due at the times of a trace."""
        return self.dataset_name == TRACE and self.trace_times == "keep"
