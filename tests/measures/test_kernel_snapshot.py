"""An evaluation by kernels against the reference's; on a CPU by Triton's interpreter."""

from dataclasses import replace

import pytest
import torch
from plain_runs import ARCHITECTURES, fresh, mixed_runs
from row_runs import row_runs
from torch import Tensor

from grokscope.activations import subject_of
from grokscope.measures import snapshot
from grokscope.measures.question import Question
from grokscope.specs import Architecture, RunSpec
from grokscope.tasks import named_task
from grokscope.training import Cohort
from grokscope.training.cohort import OLDEST_TRITON
from interpreted import kinds

pytest.importorskip("triton", OLDEST_TRITON, "Triton comes with torch's CUDA builds; on a CPU: pip install triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SOME = ("two_layers", "attention_only", "nanda", "no_final_norm_tempered")


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    from grokscope.measures import kernel_snapshot

    monkeypatch.setattr(kernel_snapshot, "PAIRS", 27)
    monkeypatch.setattr(kernel_snapshot, "LEAST", 16)
    monkeypatch.setattr(kernel_snapshot, "GROUP", 2)


def weights_at_work(architecture: Architecture) -> tuple[Cohort, Tensor]:
    """Three runs of different tasks, one with shuffled labels, with weights that are all at work."""
    first, *others = mixed_runs(architecture)
    return at_work([replace(first, shuffled_labels=True), *others])


def at_work(specs: list[RunSpec]) -> tuple[Cohort, Tensor]:
    state, cohort = fresh(specs)
    noise = torch.randn(state.weights.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return Cohort(cohort.specs, DEVICE), (state.weights + 0.2 * noise).to(DEVICE)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", kinds(SOME, ["two_layers"]))
def test_every_column_is_the_references(name: str) -> None:
    compare(*weights_at_work(ARCHITECTURES[name]))


# Groups of rows that are held out, real answers, squared errors, chunks of sequences and of vectors.
KINDS = (
    "five tokens, two layers",
    "values of tokens",
    "quadratic network",
    "mlp of vectors",
    "linear regression",
    "regression, tempered",
    "pairs, StableMax",
)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", kinds(KINDS, KINDS[1:]))
def test_every_column_of_other_tasks_is_the_references(name: str) -> None:
    compare(*at_work(row_runs(name)))


def has_tie(spec: RunSpec, weights: Tensor) -> bool:
    """Whether rounding chooses a strongest mode: all modes of a ReLU neuron that one input activates are equal."""
    if named_task(spec.task).bases:
        strongest = Question(subject_of([spec], weights)).spectrum().density[0].topk(2, dim=0).values
        return bool(torch.isclose(*strongest, rtol=1e-9).any())
    return False


def compare(cohort: Cohort, weights: Tensor) -> None:
    from grokscope.measures.kernel_snapshot import KernelReader

    with torch.no_grad():
        found = KernelReader(cohort).read(weights)
    expected = snapshot(weights, cohort, compiled=False)
    for slot in range(len(cohort)):
        ours, theirs = found.row(slot), expected.row(slot)
        assert ours.keys() == theirs.keys()
        tied = {"fsd", "fsd_gen"} if has_tie(cohort.specs[slot], weights[slot : slot + 1]) else set()
        for column, value in theirs.items():
            if column in tied:
                continue
            assert ours[column] == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True), column


@pytest.mark.slow
@pytest.mark.usefixtures("small_chunks")
def test_without_scores_only_block_0_is_read() -> None:
    from grokscope.measures.kernel_snapshot import KernelReader

    cohort, weights = weights_at_work(ARCHITECTURES["one_layer"])
    with torch.no_grad():
        found, whole = (KernelReader(cohort).read(weights, scores) for scores in (False, True))
    assert torch.equal(found.fsd, whole.fsd)
    assert found.norm.isnan().all()
