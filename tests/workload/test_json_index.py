"""Objects of a JSON list are located without parsing, whatever their strings hold."""

import json
import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.workload.files.json_index import UNKNOWN, Structure

TEXTS = st.text(st.sampled_from('{}[]",:\\ \n\tüx'), max_size=20)
TURNS = st.lists(st.fixed_dictionaries({"value": TEXTS}), max_size=4)
ENTRIES = st.lists(st.fixed_dictionaries({'a"{\\': TEXTS, "conversations": TURNS}), max_size=6)
BLOCK = 1024  # objects in one go


def walk(data, key=b"conversations"):
    """The places of all objects, and the end."""
    structure = Structure(data, key)
    places = [place for block in structure for place in block.tolist()]
    return places, structure.end


def objects(data):
    return [json.loads(data[start:end]) for start, end, _ in walk(data)[0]]


def turns(data):
    return [count for _, _, count in walk(data)[0]]


@settings(deadline=None)
@given(ENTRIES, st.sampled_from([None, 2]), st.booleans())
def test_objects_and_turns_are_found_in_any_layout(entries, indent, plain):
    data = json.dumps(entries, indent=indent, ensure_ascii=plain).encode()
    assert objects(data) == entries
    assert turns(data) == [len(entry["conversations"]) for entry in entries]
    assert walk(data)[1] == len(data)


@settings(deadline=None)
@given(ENTRIES.filter(bool), st.data())
def test_complete_objects_of_a_truncated_file_are_found(entries, draw):
    data = json.dumps(entries).encode()
    places, _ = walk(data)
    cut = draw.draw(st.integers(1, len(data) - 1))
    assert walk(data[:cut]) == ([place for place in places if place[1] <= cut], None)


@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_objects_come_in_blocks_of_which_none_is_missing(count):
    data = json.dumps([{"id": number} for number in range(count)]).encode()
    blocks = list(Structure(data, b"conversations"))
    assert all(len(block) == BLOCK and block.dtype == np.int64 for block in blocks[:-1])
    assert [
        json.loads(data[start:end])["id"] for block in blocks for start, end, _ in block
    ] == list(range(count))


def test_structure_is_scanned_one_block_ahead_only():
    structure = Structure(b"[" + b"{}," * BLOCK + b"{}]", b"conversations")
    assert (len(next(structure)), structure.end) == (BLOCK, None)
    assert (len(next(structure)), structure.end) == (1, 3 * BLOCK + 4)
    assert next(structure, None) is None


def test_memory_that_is_mapped_is_walked_as_it_is():
    with mmap.mmap(-1, 9) as memory:
        memory.write(b"[{}, {}] ")
        assert walk(memory) == ([[1, 3, 0], [5, 7, 0]], 8)


@pytest.mark.parametrize("backslashes", range(6))
def test_quote_after_even_backslashes_ends_a_string(backslashes):
    rest = '}"' if backslashes % 2 else ""
    data = '[{"a": "' + "\\" * backslashes + '"' + rest + "}, {}]"
    assert objects(data.encode()) == json.loads(data)


@pytest.mark.parametrize(
    ("entry", "count"),
    [
        ("{}", 0),
        ('{"id": "conversations"}', 0),
        ('{"conversations": []}', 0),
        ('{"conversations": [{}, {"a": [{}]}]}', 2),
        ('{ "id": 1,\n"conversations"\t: \n[{}, {}, {}]}', 3),
        ('{"id": "conversations", "turns": [{}, {}]}', UNKNOWN),
        ('{"conversations": {"a": {}}}', UNKNOWN),
        ('{"conversation": [{}, {}]}', UNKNOWN),
        ('{"conversationss": [{}, {}]}', UNKNOWN),
        ('{"conversations": [{}, {}], "more": []}', UNKNOWN),
        ('{"more": {}, "conversations": [{}, {}]}', UNKNOWN),
    ],
)
def test_turns_are_known_for_a_single_key_list(entry, count):
    assert turns(f"[{entry}, {entry}]".encode()) == [count, count]


def test_items_other_than_objects_are_skipped():
    assert walk(b'[1, "{", [{"a": [{}]}], null, {"b": 2}]')[0] == [[30, 38, 0]]


def test_a_list_that_is_closed_too_often_has_its_first_end():
    assert walk(b"[{}] ], {}]") == ([[1, 3, 0]], 4)


def test_wrong_bracket_ends_an_object():
    assert walk(b'[{"a": 1], {}]')[0] == [[1, 9, 0], [11, 13, 0]]
