"""What every task must be: rows of one kind, answers in their range, groups that part the rows."""

import jaxtyping
import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.tasks import Condition, RowGroup, Task, named_task

TOKENS = np.array([[0, 1], [1, 0], [2, 2]])
ANSWERS = np.array([0, 1, 2])


def test_pair_tables_are_rows_with_symbols_and_sums() -> None:
    task = named_task("sub_mod7")
    assert task.tokens is not None
    assert task.tokens.tolist() == [[a, b, 7] for a in range(7) for b in range(7)]
    assert task.inputs.tolist() == [[a, b] for a in range(7) for b in range(7)]
    assert (task.rows, task.length, task.features, task.vocabulary, task.classes) == (49, 3, 0, 8, 7)
    assert (task.symbols, task.separator, task.is_real, task.held_out) == (7, 7, False, ())
    assert task.sums is not None
    assert np.array_equal(task.sums, task.inputs.sum(axis=1) % 7)


def test_what_only_pair_tables_have_is_missing_elsewhere_in_one_sentence() -> None:
    task = named_task("parity_n4_k2")
    for name in ("symbols", "inputs", "separator"):
        with pytest.raises(InputError, match=r"parity_n4_k2 has no .*: it is not a table of pairs"):
            getattr(task, name)
    assert task.sums is None
    assert task.group is None


def test_conditions_are_what_the_faithful_basis_is_read_on() -> None:
    assert np.array_equal(named_task("mult_mod5").condition().values, named_task("mult_mod5").answers)
    assert named_task("parity_n4_k2").condition().size == 16
    assert named_task("parity_n4_k2").condition("answer").size == 2
    with pytest.raises(InputError, match="add3_mod5 has no inputs to condition on"):
        named_task("add3_mod5").condition("input")
    with pytest.raises(InputError, match="random5 has no basis to read activations in"):
        named_task("random5").basis()
    with pytest.raises(InputError, match="ridge_d2_n4 has real answers: there are no means by answer"):
        named_task("ridge_d2_n4").condition()


def test_shared_arrays_are_read_only() -> None:
    task = named_task("add3_mod5")
    for array in (task.tokens, task.answers, task.row_groups[0].rows, task.condition().values):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_variance_leaves_out_what_is_held_out() -> None:
    answers = np.array([[0.0, 0.0], [2.0, 0.0], [100.0, 100.0]])
    groups = (RowGroup("all", "drawn", np.array([0, 1])), RowGroup("far", "held_out", np.array([2])))
    task = Task("mine", "", answers, 2, vectors=np.zeros((3, 1)), row_groups=groups, success=0.1)
    assert task.variance == 0.5  # 1 of the first output, 0 of the second
    assert task.success_error == pytest.approx(0.05)
    assert task.is_held_out.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"tokens": None}, "mine needs either tokens or vectors, got 0 of them"),
        ({"vectors": np.zeros((3, 1))}, "mine needs either tokens or vectors, got 2 of them"),
        ({"vocabulary": 2}, "each token of mine must lie in 0 … 1, got 2 in row 2"),
        ({"tokens": TOKENS - 1}, "each token of mine must lie in 0 … 2, got -1 in row 0"),
        ({"classes": 2}, "each answer of mine must lie in 0 … 1, got 2 in row 2"),
        ({"answers": ANSWERS - 1}, "each answer of mine must lie in 0 … 2, got -1 in row 0"),
        (
            {"answers": np.array([[0.0], [np.nan], [1.0]]), "classes": 1, "success": 0.1},
            "each answer of mine must be a finite number below 1e+18, got nan in row 1",
        ),
        (
            {"tokens": None, "vectors": np.array([[0.0], [1.0], [np.inf]])},
            "each input of mine must be a finite number below 1e+18, got inf in row 2",
        ),
        ({"answers": np.zeros((3, 1)), "classes": 1}, "the success of mine must lie in (0, 1), got 0.0"),
        (
            {"answers": np.full((3, 1), 2.0), "classes": 1, "success": 0.1},
            "the answers of mine must vary, for success is a share of their variance, got 0",
        ),
        ({"classes": 2**20 + 1}, "mine may have at most 1,048,576 classes or outputs, got 1048577"),
        ({"vocabulary": 2**20 + 1}, "mine may have at most 1,048,576 tokens, got 1048577"),
        (
            {"tokens": np.zeros((3, 4097), dtype=np.int64)},
            "mine may have at most 4,096 tokens in a sequence, got 4097",
        ),
    ],
)
def test_rows_that_make_no_task_are_one_sentence(changed, sentence: str) -> None:
    fields = {"tokens": TOKENS, "answers": ANSWERS, "classes": 3, "vocabulary": 3} | changed
    with pytest.raises(InputError) as rejection:
        Task("mine", "", **fields)
    assert str(rejection.value) == sentence


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"tokens": TOKENS * 1.0},
            f"the tokens of mine must be whole numbers [rows, length], got float64 {TOKENS.shape}",
        ),
        (
            {"answers": ANSWERS * 1.0},
            "the answers of mine must be whole numbers [rows] or real ones [rows, outputs], got float64 (3,)",
        ),
        (
            {"tokens": None, "vectors": np.array(["a", "b", "c"])},
            "the vectors of mine must be real numbers [rows, features], got <U1 (3,)",
        ),
    ],
)
def test_arrays_of_other_types_are_one_sentence_where_types_are_not_checked(
    changed, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a user's own function; here in tests jaxtyping rejects them first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InputError) as rejection:
        Task("mine", "", **{"tokens": TOKENS, "answers": ANSWERS, "classes": 3, "vocabulary": 3} | changed)
    assert str(rejection.value) == sentence


def test_a_condition_says_how_many_values_there_are() -> None:
    assert Condition(np.array([0, 2]), 3).size == 3
