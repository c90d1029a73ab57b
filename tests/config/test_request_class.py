"""Classes of requests as flags, files and programs write them, and what is wrong with others."""

import pytest

from loadgen.config import request_class, serialize
from loadgen.config.request_class import RequestClass
from loadgen.config.settings import RunSettings, public
from loadgen.errors import BadInput


def test_a_class_has_the_values_of_its_keys():
    text = (
        "chat:share=1,priority=-2,model=small,random_input_len=1:5,random-output-len=7,"
        "slo=ttft_p99<1s,e2el_p50<=2s"
    )
    (one,) = RequestClass.parse((text,))
    assert (one.name, one.share, one.priority, one.model) == ("chat", 1, -2, "small")
    assert one.changes == {
        "random_input_len": "1:5",
        "random_output_len": 7,
        "slo": "ttft_p99<1s,e2el_p50<=2s",
    }


def test_values_may_have_commas_and_keys_several_values():
    text = (
        'a:headers=X-A=1,X-B=2,random_range_ratio={"input": 0.1, "output": '
        "0.2},goodput=ttft:200,goodput=e2el:900"
    )
    (one,) = RequestClass.parse((text,))
    assert one.header == ("X-A=1", "X-B=2")
    assert one.changes["random_range_ratio"] == '{"input": 0.1, "output": 0.2}'
    assert one.changes["goodput"] == ("ttft:200", "e2el:900")


def test_classes_without_shares_have_equal_ones():
    assert [one.share for one in RequestClass.parse(("a:priority=1", "b:priority=2"))] == [0.5, 0.5]


def test_rates_are_shares_of_their_sum_which_is_the_rate_of_the_run():
    settings = RunSettings(classes=("a:rate=30", "b:rate=10")).checked()
    assert [one.share for one in settings.request_classes] == [0.75, 0.25]
    assert settings.request_rate == 40


@pytest.mark.parametrize("fields", [serialize.fields, dict])
def test_a_file_or_a_program_may_give_mappings(fields):
    keys = {
        "share": 0.8,
        "headers": ["X-A=1", "X-B=2"],
        "disable_shuffle": True,
        "slo": "ttft_p99<1s,error_rate<1%",
    }
    settings = RunSettings(
        **fields({"classes": {"chat": keys, "batch": {"share": "20%", "priority": 5}}})
    )
    assert settings.classes == (
        "chat:share=0.8,header=X-A=1,header=X-B=2,disable_shuffle=true,slo=ttft_p99<1s,error_rate<1%",
        "batch:share=20%,priority=5",
    )
    assert settings.request_classes[0].changes["disable_shuffle"] is True


def test_saved_settings_have_no_values_of_headers():
    settings = RunSettings(classes=("a:header=Authorization=Bearer x,share=1",))
    assert public(settings)["classes"] == ["a:header=Authorization=(given),share=1"]
    assert serialize.restored(public(settings)).request_classes[0].share == 1


def test_the_settings_of_a_class_are_those_of_a_run_of_it_alone():
    settings = RunSettings(
        classes=(
            "a:share=0.5,priority=3,header=X-A=1,dataset=sharegpt",
            "b:share=0.5,slo=ttft_p99<1s",
        ),
        header=("X-Run=1",),
        slo="error_rate<1%",
    ).implied()
    first, second = map(settings.of_class, settings.request_classes)
    assert (first.dataset_name, first.extra_body, first.header) == (
        "sharegpt",
        {"priority": 3},
        ("X-Run=1", "X-A=1"),
    )
    assert (first.slo, second.slo) == (None, "ttft_p99<1s")
    assert (settings.ignore_eos, first.ignore_eos, second.ignore_eos) == (None, False, True)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["chat"], "'chat' is not a name"),
        (["a b:share=1"], "'a b' is not a name"),
        (["header=Authorization=Bearer x"], "'header' is not a name"),
        (["a:0.5"], "a: '0.5' does not begin with KEY="),
        (["a:Authorization=Bearer x"], "a: 'Authorization' does not begin with KEY="),
        (["a:shar=1"], "a: unknown key 'shar'; did you mean share"),
        (["a:header=X-A=1,x-b=2"], "a: unknown key 'x_b'; write header= before each"),
        (["a:no_oversample=true"], "a: unknown key 'no_oversample'"),
        (["a:share="], "a: share is empty"),
        (["a:share=1,share=1"], "a: share is given twice"),
        (["a:share=0.5", "b:share=0.4"], "the shares add up to 0.9"),
        (["a:share=0.5", "b:priority=1"], "b: has no share"),
        (["a:share=0.5", "b:rate=1"], "some classes have a share, and some a rate"),
        (["a:share=1,rate=1"], "a: has a share and a rate"),
        (["a:share=-1"], "a: share: -1 is out of range"),
        (["a:rate=fast"], "a: rate: 'fast' is not a number"),
        (["a:priority=high"], "a: priority: 'high' is not a whole number"),
        (["a:share=0.5", "a:share=0.5"], "two classes have the same name"),
        (
            ["a:random_prefix_len=x"],
            "a: --random-prefix-len: 'x' is not a whole number; write digits",
        ),
        (
            ["a:disable_shuffle=perhaps"],
            "a: --disable-shuffle: 'perhaps' is neither true nor false",
        ),
        (["a:slo=ttft<1s"], "a: --slo: 'ttft<1s' has no statistic"),
        (["a:goodput=ttft"], "a: --goodput: invalid limit"),
        (["a:header=Authorization=@key"], "a: a header is not read from a file"),
        ([f"c{number}:priority=1" for number in range(256)], "256 classes are too many"),
        (["a:random_input_len=0"], "a: --random-input-len: 0 is out of range"),
        (["a:share=1,turns=3"], "a: it has sessions"),
        (["a:dataset=trace"], "a: a trace with its own times"),
    ],
)
def test_what_cannot_be_used_is_named_with_a_remedy(texts, said):
    with pytest.raises(BadInput) as error:
        RunSettings(classes=tuple(texts)).checked()
    assert str(error.value).startswith(f"--class: {said}")
    assert "\n" not in str(error.value)
    assert "Bearer" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"request_rate": 5.0}, "--request-rate"),
        ({"burstiness": 2.0}, "--burstiness"),
        (
            {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0, "ramp_up_end_rps": 2.0},
            "--ramp-up-strategy",
        ),
        ({"num_prompts": -1}, "--num-prompts"),
        ({"no_oversample": True}, "--no-oversample"),
    ],
)
def test_other_flags_that_contradict_rates_of_classes_are_named(options, field):
    with pytest.raises(BadInput, match=f"^{field}: "):
        RunSettings(classes=("a:rate=3", "b:rate=1"), **options).checked()


@pytest.mark.parametrize("classes", [{"a": 1}, {"a": {"model": "x, share=2"}}])
def test_a_mapping_that_cannot_be_written_is_refused(classes):
    with pytest.raises(BadInput, match=r"^--class: a: "):
        request_class.class_texts(classes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"classes": ("a:rate=6e5", "b:rate=6e5")},
            "--class: the rates of the classes together: 1,200,000 is out of range; give a "
            "number above 0, up to 1,000,000 requests/s",
        ),
        (
            {"classes": ("a:rate=3", "b:rate=2"), "request_rate": 7.0},
            "--request-rate: given together with classes",
        ),
        ({"classes": ("a:rate=3", "b:rate=2"), "users": 7}, "--users: given together with classes"),
        (
            {"classes": ("a:rate=3",), "concurrency_profile": "7@5s"},
            "--concurrency-profile: given together with",
        ),
        (
            {"classes": ("a:rate=2e6",)},
            "--class: a: rate: 2,000,000 is out of range; "
            "give requests/s, above 0 and up to 1,000,000",
        ),
        (
            {"classes": ("a:priority=1e3",)},
            "--class: a: priority: '1e3' is not a whole number; write digits only, for example 10",
        ),
        (
            {"classes": ("a:priority=1000000000",)},
            "--class: a: priority: 1000000000 is out of range; "
            "give a whole number from -999,999,999",
        ),
        (
            {"classes": ("a:dataset=multi_turn",), "users": 7, "duration": 5.0},
            "--class: a: it has sessions, and the number of their turns is not known before; "
            "give --duration and --request-rate, and no --users",
        ),
        (
            {
                "classes": ("a:rate=3",),
                "ramp_up_strategy": "linear",
                "ramp_up_start_rps": 1,
                "ramp_up_end_rps": 2,
            },
            "--ramp-up-strategy: given together with classes",
        ),
        (
            {"classes": ("a:rate=3",), "dataset_name": "trace", "dataset_path": "x"},
            "--class: the rates of the classes together: given together with a trace",
        ),
    ],
)
def test_rates_that_cannot_be_used_name_what_has_set_them(changes, says):
    with pytest.raises(BadInput) as refused:
        RunSettings(**changes).checked()
    assert str(refused.value).startswith(says)


def test_times_of_a_class_have_units():
    (one,) = RequestClass.parse(("a:dataset=agentic,dataset_path=x,max_think_time=500ms",))
    assert one.changes["max_think_time"] == 0.5
