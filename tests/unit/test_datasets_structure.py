"""Where the objects of a JSON list lie is found without parsing, whatever the strings in it say."""

import json
import mmap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.datasets import structure
from loadgen.datasets.structure import Structure

TEXTS = st.text(st.sampled_from('{}[]",:\\ \n\tüx'), max_size=20)
TURNS = st.lists(st.fixed_dictionaries({"value": TEXTS}), max_size=4)
ENTRIES = st.lists(st.fixed_dictionaries({'a"{\\': TEXTS, "conversations": TURNS}), max_size=6)


def mapped(data):
    memory = mmap.mmap(-1, len(data))
    memory.write(data)
    return memory


def structure_of(data):
    return Structure.of(mapped(data))


def objects(data):
    found = structure_of(data)
    return [json.loads(data[start:end]) for start, end in zip(found.starts, found.ends, strict=True)]


@settings(deadline=None)
@given(ENTRIES, st.sampled_from([None, 2]), st.booleans(), st.integers(1, 40))
def test_every_object_is_found_in_any_layout_and_with_any_chunks(entries, indent, plain, chunk):
    data = json.dumps(entries, indent=indent, ensure_ascii=plain).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "CHUNK", chunk)
        assert objects(data) == entries
        assert structure_of(data).end == len(data)


@settings(deadline=None)
@given(ENTRIES.filter(bool), st.data())
def test_of_a_file_that_is_cut_off_the_whole_objects_are_found(entries, draw):
    data = json.dumps(entries).encode()
    cut = draw.draw(st.integers(1, len(data) - 1))
    found = structure_of(data[:cut])
    assert found.end is None
    assert objects(data[:cut]) == entries[: len(found.ends)]
    assert len(found.ends) == sum(end <= cut for end in structure_of(data).ends)


@settings(deadline=None)
@given(ENTRIES, st.booleans(), st.integers(1, 40))
def test_a_walk_meets_the_same_objects_and_says_where_the_list_ends(entries, whole, chunk):
    data = json.dumps(entries).encode() if whole else json.dumps([*entries, {}]).encode()[:-2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "CHUNK", chunk)
        walk, met, end = structure.objects(mapped(data)), [], None
        try:
            while True:
                met.append(next(walk))
        except StopIteration as stop:
            end = stop.value
    found = structure_of(data)
    assert met == list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    assert end == found.end == (len(data) if whole else None)


@pytest.mark.parametrize("backslashes", range(6))
def test_a_quote_after_an_even_number_of_backslashes_ends_a_string(backslashes):
    rest = '}"' if backslashes % 2 else ""
    data = '[{"a": "' + "\\" * backslashes + '"' + rest + "}, {}]"
    assert objects(data.encode()) == json.loads(data)


def test_children_and_grandchildren_are_the_brackets_one_and_two_levels_down():
    data = b'[{"a": [{"b": {}}, [], {}], "c": {"d": {}}, "e": []}]'
    found = structure_of(data)
    assert found.children.tolist() == [data.index(b"[{", 1), data.index(b'{"d"'), data.index(b"[]}]")]
    assert found.grandchildren.tolist() == [data.index(b'{"b"'), data.index(b"{}]"), data.index(b"{}}, ", 30)]


def test_a_list_that_is_closed_too_often_has_its_first_end():
    assert structure_of(b"[{}] ]").end == 4
