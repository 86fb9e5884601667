import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from grokscope.model import row_losses, row_scores


@given(st.integers(1, 3), st.integers(1, 20), st.integers(2, 9), st.integers(0, 10**6))
def test_losses_are_cross_entropy_and_answers_the_largest_logit(
    runs: int, inputs: int, classes: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = 5 * torch.randn(runs, inputs, classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (runs, inputs), generator=generator)
    right, losses = row_scores(logits, labels)
    expected = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(runs, inputs)
    assert torch.allclose(losses, expected, rtol=0, atol=1e-12)
    assert torch.equal(losses, row_losses(logits, labels))
    assert right.tolist() == [
        [float(max(range(classes), key=row.__getitem__) == label) for row, label in zip(*pairs, strict=True)]
        for pairs in zip(logits.tolist(), labels.tolist(), strict=True)
    ]


def test_the_first_of_several_largest_logits_is_the_answer() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0]]).expand(4, -1)
    assert row_scores(logits, torch.arange(4))[0].tolist() == [0, 1, 0, 0]


def test_padded_classes_change_nothing() -> None:
    logits = torch.randn(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    padded = torch.nn.functional.pad(logits, (0, 3), value=-torch.inf)
    labels = torch.arange(7) % 5
    for one, other in zip(row_scores(logits, labels), row_scores(padded, labels), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-15)


def test_logits_that_are_not_numbers_are_neither_right_nor_wrong() -> None:
    logits = torch.zeros(3, 4)
    logits[1, 2] = torch.nan
    right, losses = row_scores(logits, torch.zeros(3, dtype=torch.int64))
    assert right.isnan().tolist() == losses.isnan().tolist() == [False, True, False]
