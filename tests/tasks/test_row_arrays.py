"""Rows as named arrays: what a file or a function may give, and one sentence for everything else."""

from typing import Any

import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.tasks import row_arrays
from grokscope.tasks.row_arrays import task_of_arrays

PAIRS = np.array([[a, b] for a in range(5) for b in range(5)])
SUMS = PAIRS.sum(axis=1) % 5
NUMBERS = PAIRS / 4


def rows(**arrays: Any) -> dict[str, Any]:
    return {"tokens": PAIRS, "answers": SUMS, **arrays}


def test_tokens_and_classes_are_counted_unless_they_are_named() -> None:
    task = task_of_arrays("mine", "what it is", rows())
    assert (task.rows, task.length, task.vocabulary, task.classes, task.is_real) == (25, 2, 5, 5, False)
    assert [(group.name, group.rule) for group in task.row_groups] == [("drawn", "drawn")]
    assert not task.bases
    wider = task_of_arrays("mine", "", rows(classes=7, vocabulary=np.int64(9)))
    assert (wider.vocabulary, wider.classes) == (9, 7)


@pytest.mark.parametrize("answers", [NUMBERS[:, 0], NUMBERS])
def test_real_answers_are_outputs_with_a_success(answers: np.ndarray) -> None:
    task = task_of_arrays("mine", "", {"vectors": NUMBERS, "answers": answers, "success": 0.25})
    assert task.is_real
    assert (task.features, task.classes, task.vocabulary) == (2, answers.size // 25, 0)
    assert task.success_error == pytest.approx(0.25 * answers.var())


def test_vectors_of_whole_numbers_are_numbers() -> None:
    task = task_of_arrays("mine", "", {"vectors": PAIRS.astype(np.uint8), "answers": SUMS.astype(bool)})
    assert task.vectors is not None
    assert task.vectors.dtype == np.float64
    assert task.classes == 2


def test_groups_are_masks_or_indices_and_the_rest_is_drawn_from() -> None:
    mask = PAIRS[:, 0] == 4
    task = task_of_arrays("mine", "", rows(held_out_far=mask, train=np.array([0, 1]), validation=[2]))
    found = {group.name: (group.rule, group.rows.tolist()) for group in task.row_groups}
    assert found["far"] == ("held_out", np.flatnonzero(mask).tolist())
    assert found["train"] == ("train", [0, 1])
    assert found["validation"] == ("validation", [2])
    assert found["drawn"] == ("drawn", list(range(3, 20)))


def test_a_task_may_be_split_completely() -> None:
    mask = np.arange(25) < 10
    task = task_of_arrays("mine", "", rows(train=mask, validation=~mask))
    assert {group.rule for group in task.row_groups} == {"train", "validation"}


def test_what_is_given_is_not_changed_with_it() -> None:
    tokens = PAIRS.copy()
    task = task_of_arrays("mine", "", rows(tokens=tokens))
    tokens[:] = 0
    assert task.tokens is not None
    assert np.array_equal(task.tokens, PAIRS)


NAN, INFINITE = NUMBERS.copy(), NUMBERS.copy()
NAN[3, 1], INFINITE[2, 0] = np.nan, -np.inf
LONG = NUMBERS.astype(np.longdouble) * np.longdouble("1e300") ** 2  # beyond 64 bits where there are longer numbers
REAL = {"vectors": NUMBERS, "answers": NUMBERS}


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({}, "mine needs an array answers, got nothing"),
        ({"tokens": PAIRS}, "mine needs an array answers, got 'tokens'"),
        ({"answers": SUMS}, "mine needs either tokens or vectors, got neither"),
        (rows(vectors=NUMBERS), "mine needs either tokens or vectors, got tokens and vectors"),
        (rows(anwsers=SUMS), "mine has an unknown array 'anwsers'; did you mean 'answers'?"),
        (rows(tokens=[[0, 1], [1]]), "the tokens of mine must have rows of one length: they are ragged"),
        (rows(answers=[[0], [1, 2]]), "the answers of mine must have rows of one length: they are ragged"),
        (rows(tokens=PAIRS[:, 0]), "the tokens of mine must have shape [rows, …] and not be empty, got (25,)"),
        (rows(tokens=PAIRS[:, :0]), "the tokens of mine must have shape [rows, …] and not be empty, got (25, 0)"),
        (rows(tokens=PAIRS[None]), "the tokens of mine must have shape [rows, …] and not be empty, got (1, 25, 2)"),
        (rows(tokens=PAIRS[:0], answers=SUMS[:0]), "mine has no answers"),
        (rows(tokens=PAIRS[:24]), "mine has 24 rows and 25 answers"),
        (rows(tokens=NUMBERS), "the tokens of mine must be whole numbers, got 'float64'"),
        (rows(tokens=PAIRS - 1), "each token of mine must lie in 0 … 3, got -1 in row 0"),
        (rows(vocabulary=4), "each token of mine must lie in 0 … 3, got 4 in row 4"),
        (rows(answers=SUMS - 1), "each answer of mine must lie in 0 … 3, got -1 in row 0"),
        (rows(classes=3), "each answer of mine must lie in 0 … 2, got 3 in row 3"),
        (rows(classes=0), "mine needs at least one class or output, got 0"),
        (rows(classes=2.0), "classes of mine must be one whole number, got 2.0"),
        (rows(classes=[5]), "classes of mine must be one whole number, got [5]"),
        (rows(vocabulary=True), "vocabulary of mine must be one whole number, got True"),
        (rows(answers=np.stack([SUMS, SUMS], 1)), "classes as answers of mine must be one number per row"),
        (rows(answers=SUMS.astype(str)), "the answers of mine must be numbers, got '<U"),
        (rows(answers=SUMS.astype(complex)), "the answers of mine must be numbers, got 'complex128'"),
        (rows(answers=[None] * 25), "the answers of mine must be numbers, got 'object'"),
        (rows(answers=SUMS.astype("datetime64[s]")), "the answers of mine must be numbers, got 'datetime64[s]'"),
        (rows(success=0.1), "success is of real answers, and those of mine are classes"),
        ({"vectors": NUMBERS, "answers": NUMBERS}, "mine has real answers: it needs success, the share of"),
        (REAL | {"success": 1.5}, "the success of mine must lie in (0, 1), got 1.5"),
        (REAL | {"success": np.nan}, "the success of mine must lie in (0, 1), got nan"),
        (REAL | {"success": [0.1, 0.2]}, "success of mine must be one number, got [0.1, 0.2]"),
        (REAL | {"success": 0.1, "classes": 3}, "each answer of mine must have 3 values"),
        (REAL | {"success": 0.1, "vectors": NAN}, "each input of mine must be a finite number"),
        (REAL | {"success": 0.1, "answers": INFINITE}, "each answer of mine must be a finite number"),
        (REAL | {"success": 0.1, "answers": NUMBERS * 1e200}, "each answer of mine must be a finite number below"),
        (REAL | {"success": 0.1, "vectors": NUMBERS * 1e300}, "each input of mine must be a finite number below 1e+18"),
        (REAL | {"success": 0.1, "vectors": LONG}, "each input of mine must be a finite number below 1e+18, got"),
        (rows(tokens=PAIRS.astype(np.uint64) + np.uint64(2**63), vocabulary=5), "tokens of mine must be below 2^63"),
        (rows(tokens=np.zeros((25, 4097), np.int8)), "mine may have at most 4,096 tokens in a sequence, got 4097"),
        (rows(train=[0], held_out_far=[0]), "the groups of rows of mine must not overlap, got row 0 in"),
        (rows(train=[0, 0]), "train of mine names a row twice"),
        (rows(train=[25]), "rows of train of mine must lie in 0 … 24"),
        (rows(train=[-1]), "rows of train of mine must lie in 0 … 24"),
        (rows(train=[[0]]), "train of mine must be a mask or a list of rows, got (1, 1)"),
        (rows(train=[0.5]), "the train of mine must be whole numbers, got 'float64'"),
        (rows(train=[True, False]), "the mask train of mine must have one value per row, got (2,)"),
        (rows(train=np.arange(25)), "mine has no row for validation"),
        (rows(validation=np.arange(25)), "mine has no row to train on"),
        (rows(held_out_far=np.arange(25)), "mine has no row to train on"),
        (rows(held_out_far=np.zeros(25, dtype=bool)), "the group 'far' of mine has no row"),
        (rows(held_out_=[1]), "needs a name of lower-case letters, digits and _"),
        (rows(held_out_Far=[1]), "needs a name of lower-case letters, digits and _"),
        (rows(held_out_train=[1]), "needs a name of lower-case letters, digits and _, not train or"),
        (rows(held_out_restricted=[1]), "needs a name of lower-case letters, digits and _, not train or"),
        (rows(held_out_drawn=[1]), "mine has two groups of rows with the name 'drawn'"),
    ],
)  # fmt: skip
def test_everything_else_is_one_sentence(arrays: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        task_of_arrays("mine", "", arrays)
    assert sentence in str(rejection.value)
    assert str(rejection.value).isprintable()
    assert len(str(rejection.value)) < 300


def test_so_many_symbols_that_no_matrix_has_a_row_for_each_are_one_sentence() -> None:
    for name, what in {"classes": "classes or outputs", "vocabulary": "tokens"}.items():
        for most in (2**20 + 1, np.uint64(2**63)):
            with pytest.raises(InputError, match=f"mine may have at most 1,048,576 {what}, got {most}"):
                task_of_arrays("mine", "", rows(**{name: most}))
    with pytest.raises(InputError, match="mine may have at most 1,048,576 tokens, got 1000000000000005"):
        task_of_arrays("mine", "", rows(tokens=PAIRS + 10**15))
    with pytest.raises(InputError, match="mine may have at most 1,048,576 classes or outputs, got"):
        task_of_arrays("mine", "", rows(answers=SUMS + 10**15))
    for tokens in (PAIRS.astype(np.uint64) + np.uint64(2**63), [[2**70, 1]] * 25):
        with pytest.raises(InputError, match="mine"):
            task_of_arrays("mine", "", rows(tokens=tokens))


CONSTANT = np.stack([np.full(25, 0.1), np.full(25, -3.0)], axis=1)


@pytest.mark.parametrize(
    "answers",
    [
        CONSTANT,
        CONSTANT[:, 0],
        NUMBERS * 1e-30,  # its square is no 32-bit number
        1e9 + NUMBERS,  # nor is the difference of these
    ],
)
def test_real_answers_without_variance_have_no_success(answers: np.ndarray) -> None:
    """A constant's variance is rarely 0 in floating point, and any share of it would be success at once."""
    with pytest.raises(InputError, match="the answers of mine must vary, for success is a share of their variance"):
        task_of_arrays("mine", "", {"vectors": NUMBERS, "answers": answers, "success": 0.1})


def test_one_output_of_several_may_be_constant_and_rows_that_are_held_out_do_not_count() -> None:
    answers = np.stack([NUMBERS[:, 0], np.zeros(25)], axis=1)
    assert task_of_arrays("mine", "", {"vectors": NUMBERS, "answers": answers, "success": 0.1}).success_error > 0
    far = NUMBERS[:, 0] == 1
    with pytest.raises(InputError, match="the answers of mine must vary"):
        task_of_arrays("mine", "", {"vectors": NUMBERS, "answers": far * 1.0, "success": 0.1, "held_out_far": far})


def test_all_arrays_together_may_hold_so_many_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_arrays, "MAX_NUMBERS", 75)
    assert task_of_arrays("mine", "", rows()).rows == 25  # 50 tokens and 25 answers
    with pytest.raises(InputError, match="mine may hold at most 75 numbers, got 76"):
        task_of_arrays("mine", "", rows(classes=5))


def test_what_is_no_mapping_of_arrays_is_one_sentence() -> None:
    class Hostile:
        def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
            raise RuntimeError("no")

    for value in (Hostile(), object(), {"a": 1}, lambda: 3):
        with pytest.raises(InputError, match="the answers of mine must be"):
            task_of_arrays("mine", "", rows(answers=value))
