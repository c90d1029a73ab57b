"""The tables: a row for each client, with marks on figures that need a remark."""

from bench.peers.costs import Costs
from bench.peers.made_up import LOADS, TRUE, trial
from bench.peers.tables import aims_table, costs_table, load_table, runs_table
from tests.helpers.documents import cells_of, table


def all_loads(**changes: float) -> Costs:
    return Costs({name: [trial(name, **changes)] for name in LOADS})


def test_a_client_has_a_row_with_its_costs_and_its_size() -> None:
    (row,) = cells_of(costs_table({"some": all_loads()}, {"some": 1234.0}))
    assert row[0] == "some"
    assert row[5:] == ("1.00", "0.500", "50.0", "80.0", "3", "1,234")


def test_a_client_whose_runs_were_all_disturbed_is_marked() -> None:
    (row,) = cells_of(costs_table({"some": all_loads(others_s=9.0)}, {}))
    assert row[0] == "some*"
    assert row[-1] == "-"


def test_reported_values_precede_true_values() -> None:
    told = {"ttft": {50: 1.0, 99: 2.8}, "tpot": TRUE["tpot"]}
    (row,) = cells_of(load_table({"some": Costs({"W1": [trial(told=told)]})}, "W1"))
    assert row == (
        "some",
        "200",
        "1.50",
        "1.00 / 2.80 (20.0 / 20.4)",
        "- (20.0 / 20.4)",
        row[5],
        "nothing",
    )


def test_random_arrivals_are_not_called_late_and_a_late_server_is() -> None:
    found = {"some": Costs({"W1": [trial(poisson=True, overloaded=True, says="a | b")]})}
    (row,) = cells_of(load_table(found, "W1"))
    assert row[0] == "some (server late)"
    assert row[2] == "Poisson"
    assert row[-1] == "a | b"


def test_every_run_is_listed() -> None:
    found = {"some": Costs({"W1": [trial(), trial(others_s=4.1)]})}
    assert [row[-1] for row in cells_of(runs_table(found))] == ["", "disturbed"]


def test_a_table_of_no_aims_is_empty() -> None:
    assert cells_of(aims_table([])) == []


def test_a_bar_stays_within_its_cell() -> None:
    written = table(["a|b", "c"], [["d|e", ""], ["f", "|"]])
    assert cells_of(written) == [("d|e", ""), ("f", "|")]
