"""Spectra of groups against characters that GAP computed."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gap.make_fixtures import number, rebuild_table

from grokscope.measures.spectrum import spectrum
from grokscope.measures.synchronization import fsd
from grokscope.tasks import Basis, Group, group_modes

GAP = Path(__file__).parents[1] / "tasks" / "gap"
GROUPS = ["S4", "A4", "A5", "Q8", "Aff7"]  # A4 and Aff7 have complex characters, Q8 a quaternionic irrep


def power_by_gap(record: dict, table: np.ndarray, functions: np.ndarray) -> dict[int, np.ndarray]:
    """P(ρ) = (d/|G|) Σ_{c, c'} φ(c) φ(c') χ(c·c'⁻¹) of every irrep but the trivial, conjugates together."""
    order = len(table)
    identity = next(e for e in range(order) if (table[e] == np.arange(order)).all())
    inverse = np.array([int(np.flatnonzero(table[g] == identity)[0]) for g in range(order)])
    class_of = {g: i for i, members in enumerate(record["classes"]) for g in members}
    quotient = np.vectorize(class_of.get)(table[:, inverse])
    characters = np.array([[number(value) for value in row] for row in record["characters"]])
    found, done = {}, set()
    for i, character in enumerate(characters):
        conjugate = int(np.abs(characters - character.conj()).sum(axis=1).argmin())
        if np.allclose(character, 1) or conjugate in done:
            continue
        done.add(i)
        matrix = sum(characters[k][quotient] for k in {i, conjugate}) * character[class_of[identity]].real / order
        found[i] = np.einsum("cj,cd,dj->j", functions, matrix.real, functions)
    return found


@pytest.mark.parametrize("name", GROUPS)
def test_power_in_irreps_is_that_of_gaps_characters(name: str) -> None:
    record = json.loads((GAP / f"{name}.json").read_text())
    table = rebuild_table(record)
    group = Group(name, table)
    functions = np.random.default_rng(0).normal(size=(len(table), 6))
    found = spectrum(torch.from_numpy(functions), Basis("isotypic", np.arange(len(table)), group_modes(group)))
    expected = np.stack(list(power_by_gap(record, table, functions).values()))
    assert found.power.shape == expected.shape
    # Our order of irreps is not GAP's: rows are matched by the first neuron, and then all must agree.
    ours, theirs = found.power.numpy(), expected
    assert np.allclose(ours[ours[:, 0].argsort()], theirs[theirs[:, 0].argsort()], atol=1e-10)


@pytest.mark.parametrize("name", GROUPS)
def test_a_function_made_of_one_of_gaps_characters_lies_in_one_mode(name: str) -> None:
    record = json.loads((GAP / f"{name}.json").read_text())
    table = rebuild_table(record)
    class_of = {g: i for i, members in enumerate(record["classes"]) for g in members}
    basis = Basis("isotypic", np.arange(len(table)), group_modes(Group(name, table)))
    for row in record["characters"][1:]:
        character = np.array([number(row[class_of[g]]) for g in range(len(table))]).real
        # Neurons that all translate this one character agree on its mode.
        neurons = np.stack([character[table[g]] for g in range(0, len(table), 3)], axis=1)
        found = fsd(spectrum(torch.from_numpy(neurons), basis).density)
        assert float(found.fsd) == pytest.approx(1.0)
