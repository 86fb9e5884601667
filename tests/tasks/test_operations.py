import numpy as np
import pytest

from grokscope.errors import InputError
from grokscope.tasks import Task, character_table, group_of, named_task, orthogonal_form

RULES = {
    "add_mod97": lambda a, b: (a + b) % 97,
    "sub_mod97": lambda a, b: (a - b) % 97,
    "mult_mod97": lambda a, b: a * b % 97,
    "div_mod97": lambda a, b: a * pow(b, -1, 97) % 97,
    "poly_a2+ab+b2_mod97": lambda a, b: (a * a + a * b + b * b) % 97,
    "poly_a3+ab_mod97": lambda a, b: (a**3 + a * b) % 97,
    "poly_-2a3b2+5b-7_mod50": lambda a, b: (-2 * a**3 * b**2 + 5 * b - 7) % 50,
}


@pytest.mark.parametrize("name", RULES)
def test_answers_follow_the_rule(name: str) -> None:
    task = named_task(name)
    expected = [RULES[name](int(a), int(b)) for a, b in task.inputs]
    assert task.answers.tolist() == expected


@pytest.mark.parametrize("name", ["add_mod97", "mult_mod53", "S4", "poly_a2+ab+b2_mod97", "Z3xS3"])
def test_every_pair_stands_once(name: str) -> None:
    task = named_task(name)
    assert len({tuple(pair) for pair in task.inputs.tolist()}) == task.symbols**2 == len(task.inputs)
    assert task.tokens.shape == (task.symbols**2, 3)
    assert np.array_equal(task.tokens[:, :2], task.inputs)
    assert (task.tokens[:, 2] == task.symbols).all()
    assert task.vocabulary == task.symbols + 1


def test_counts_of_multiplication_and_division() -> None:
    mult, div = named_task("mult_mod97"), named_task("div_mod97")
    assert np.bincount(mult.answers).tolist() == [2 * 97 - 1] + [96] * 96
    assert len(div.inputs) == 97 * 96
    assert np.bincount(div.answers)[0] == 96


def test_the_faithful_basis_comes_first() -> None:
    assert named_task("add_mod97").basis().name == "additive"
    assert named_task("mult_mod97").basis().name == "multiplicative"
    assert named_task("div_mod97").basis().name == "multiplicative"
    assert named_task("S5").basis().name == "isotypic"
    assert named_task("mult_mod97").basis("additive").name == "additive"
    with pytest.raises(InputError, match="S5 has no basis 'additive'"):
        named_task("S5").basis("additive")


@pytest.mark.parametrize("name", ["add_mod23", "mult_mod23", "Z12", "S4"])
def test_an_operation_is_a_shift_in_its_faithful_basis(name: str) -> None:
    """What makes a basis faithful: fixing a and varying b turns b's mode into the answer's same mode."""
    task = named_task(name)
    basis = task.basis()
    place = np.full(task.symbols, -1)
    place[basis.answers] = np.arange(len(basis.answers))
    phi = np.random.default_rng(0).standard_normal(len(basis.answers))
    powers = basis.modes.power(phi)
    for a in basis.answers[:5]:
        rows = (task.inputs[:, 0] == a) & (place[task.inputs[:, 1]] >= 0)
        shifted = np.empty_like(phi)
        shifted[place[task.inputs[rows, 1]]] = phi[place[task.answers[rows]]]
        assert np.allclose(basis.modes.power(shifted), powers)


@pytest.mark.parametrize("name", ["add_mod97", "sub_mod97", "mult_mod97", "div_mod97", "poly_a2+ab+b2_mod97"])
def test_sums_are_the_papers_reading_of_every_operation(name: str) -> None:
    task = named_task(name)
    assert task.sums is not None
    assert task.sums.tolist() == [(a + b) % 97 for a, b in task.inputs.tolist()]


def test_subtraction_has_additions_basis_and_no_group() -> None:
    task, addition = named_task("sub_mod97"), named_task("add_mod97")
    assert task.group is None
    assert list(task.bases) == list(addition.bases) == ["additive"]
    assert np.array_equal(task.basis().answers, addition.basis().answers)
    assert task.basis().modes is addition.basis().modes


def test_groups_have_no_sums() -> None:
    assert named_task("S5").sums is None


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ad_mod97", "'ad_mod97' is not a task (`grokscope tasks` lists them); did you mean 'add_mod97'?"),
        ("s5", "did you mean 'S5'?"),
        ("multiply_mod59", "did you mean 'mult_mod59'?"),
        ("mult_mod96", "mult needs a prime modulus, got 96 in 'mult_mod96'; the nearest is 97"),
        ("div_mod100", "div needs a prime modulus, got 100"),
        ("add_mod4", "the modulus must lie between 5 and 1000, got 4"),
        ("mult_mod2", "the modulus must lie between 5 and 1000, got 2"),
        ("add_mod1009", "the modulus must lie between 5 and 1000, got 1009"),
        ("add_mod097", "a modulus is written without leading zeros"),
        ("poly_a2+c_mod97", "is not a task"),
        ("", "'' is not a task"),
        ("x" * 10_000, "is not a task"),
        ("add_mod97\n", "is not a task"),
        ("\u202eadd_mod97", "is not a task"),
        ("S9", "'S9' has more than 1000 elements"),
        ("add_mod٩٧", "is not a task"),  # Arabic digits
        ("poly_a٢+b_mod97", "is not a task"),
    ],
)
def test_bad_names(name: str, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        named_task(name)
    message = str(rejection.value)
    assert sentence in message
    assert len(message) < 300
    assert "\n" not in message
    assert "\u202e" not in message


def test_groups_of_tasks() -> None:
    assert group_of("add_mod7").name == "Z7"
    with pytest.raises(InputError, match="'sub_mod97' is not a group's operation"):
        group_of("sub_mod97")


def test_tasks_are_made_once() -> None:
    first: Task = named_task("add_mod97")
    assert named_task("add_mod97") is first


@pytest.mark.parametrize("name", ["add_mod97", "S4", "div_mod7"])
def test_what_is_shared_cannot_be_written_to(name: str) -> None:
    task = named_task(name)
    modes = task.basis().modes
    for array in (task.inputs, task.answers, modes.basis, modes.block(0), *([] if task.sums is None else [task.sums])):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_irreps_cannot_be_written_to() -> None:
    group = group_of("S4")
    table = character_table(group)
    for array in (table.values, table.dimensions, table.indicators, orthogonal_form(group, (3, 1)), *group.classes):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
