from grokscope.studies.foresight.cells import CELLS, CLOCK
from grokscope.tasks import named_task


def test_the_collection_is_as_large_as_it_is_said_to_be() -> None:
    cells = [*CELLS.values()]
    assert 75 <= len(cells) <= 150
    assert 0.4 <= sum(cell.kind == "boundary" for cell in cells) / len(cells) <= 0.6
    assert len({cell.spec.content_hash for cell in cells}) == len(cells)


def test_budgets_are_five_times_the_expected_time_where_runs_can_grok() -> None:
    for cell in CELLS.values():
        training = cell.spec.training
        if cell.kind != "negative":
            assert training.steps >= 4.9 * CLOCK / (training.learning_rate * training.weight_decay)


def test_no_held_out_family_is_a_development_cell() -> None:
    held_out = {cell.held_out for cell in CELLS.values()} - {""}
    assert held_out == {"groups", "parity", "mlp"}
    for cell in CELLS.values():
        is_strange = cell.spec.task.startswith(("parity", "S5", "A5", "D59")) or cell.spec.architecture.kind == "mlp"
        assert not (is_strange and cell.split == "development")
        assert (cell.kind == "negative") == bool(cell.cause)
        assert (cell.kind == "boundary") == (cell.bracket is not None)


def test_every_task_exists() -> None:
    for task in {cell.spec.task for cell in CELLS.values()}:
        assert named_task(task).name == task
