"""How much of the logits is the algorithm's own shape, cos(2πk(a + b − c)/p) or a group's characters."""

from dataclasses import dataclass

import torch
from torch import Tensor

from grokscope.activations import Conditioning, Edits, Subject, answer_sums, condition_of, conditioning_basis
from grokscope.measures.question import FORWARD, Columns, Measure, Question
from grokscope.measures.spectrum import CONSTANT_SHARE, add_up, mode_number
from grokscope.shapes import Float, Int
from grokscope.tasks import Basis

__all__ = ["ENTRIES", "LogitStructure", "logit_structure"]


@dataclass(frozen=True)
class LogitStructure:
    """The logits' parts along each mode's direction C_m."""

    explained: Float[Tensor, "runs modes"]
    """Share of the logits' variance along C_m; NaN where they do not vary over the classes."""
    height: Float[Tensor, "runs modes"]
    """Coefficient of C_m, scaled to 1 at the right answer: what mode m adds to the right answer's logit."""
    variance: Float[Tensor, " runs"]
    """Mean square of the logits, centred over the classes; NaN where that is rounding."""

    @property
    def total(self) -> Float[Tensor, " runs"]:
        """Share along all of them: the directions are orthogonal."""
        return self.explained.sum(dim=-1)


def logit_structure(
    subject: Subject,
    by: Conditioning = "",
    basis: Basis | None = None,
    edits: Edits | None = None,
) -> LogitStructure:
    """Share of the logit variance over all pairs along C_m[x, c] = Σ_{ρ ∈ m} χ_ρ(s_x c⁻¹), s_x the answer of pair x.

    On Z_n, C_k ∝ cos(2πk(a + b − c)/n): the paper's key-logit term (§2, Eq. 1); on groups, Chughtai et al.'s characters
    χ_ρ(x y z⁻¹), conjugate irreps together. Logits are known up to a constant for each pair, so they are centred over
    the classes first. Pairs and classes whose answer stands outside the basis's group (0, for multiplication) are left
    out. With `by` = "sum", s_x is a + b whatever the operation; `edits` change sites before the logits are read.

    C_m ∝ B_m B_mᵀ of the mode's block, so with S[s, c] the sum of the logits over the pairs with answer s, the
    inner product is Σ_i b_iᵀ S b_i: the pairs × classes cube of a direction is never made.

    >>> from grokscope.activations import subject_of
    >>> from grokscope.specs import RunSpec
    >>> from grokscope.training import Cohort, initial_state
    >>> run = RunSpec(task="add_mod7")
    >>> drawn = initial_state(Cohort([run])).weights
    >>> bool(logit_structure(subject_of([run], drawn)).total < 0.5)
    True
    """
    read_in = conditioning_basis(subject.task, by) if basis is None else basis
    elements = torch.tensor(read_in.answers, device=subject.device)
    place = torch.full((subject.task.classes,), -1, device=subject.device)
    place[elements] = torch.arange(len(elements), device=subject.device)
    condition = place[torch.tensor(condition_of(subject.task, by).values, device=subject.device)]
    sums, squares, sizes = _totals(subject, elements, condition, edits)
    subject.require_numbers("logits", squares.isfinite())
    # Logits that are all alike up to rounding have no structure; never true of NaN.
    squares = squares.where(~(squares <= CONSTANT_SHARE * sizes), torch.nan)
    return _structure(sums, squares, int((condition >= 0).sum()), read_in)


def _totals(
    subject: Subject, elements: Int[Tensor, " elements"], condition: Int[Tensor, " inputs"], edits: Edits | None
) -> tuple[Tensor, Tensor, Tensor]:
    """S[s, c] over the group, and Σ of the squares of centred and of raw logits of the pairs whose answer is in it."""
    n = len(elements)
    sums = torch.zeros(len(subject), n, n, dtype=torch.float64, device=subject.device)
    squares, sizes = sums.new_zeros(2, len(subject))
    for rows, part in subject.logit_parts(edits):
        logits = part[..., elements].double()
        centred = logits - logits.mean(dim=-1, keepdim=True)
        own = condition[rows]
        sums += answer_sums(centred, own.expand(len(subject), -1), n)
        squares += centred[:, own >= 0].square().sum(dim=(1, 2))
        sizes += logits[:, own >= 0].square().sum(dim=(1, 2))
    return sums, squares, sizes


def _structure(
    sums: Float[Tensor, "runs elements elements"], squares: Float[Tensor, " runs"], pairs: int, basis: Basis
) -> LogitStructure:
    n = sums.shape[-1]
    waves = torch.tensor(basis.modes.basis[:, 1:], device=sums.device)
    dimensions = torch.tensor(basis.modes.dimensions, dtype=torch.float64, device=sums.device)
    along = ((sums @ waves) * waves).sum(dim=-2)  # b_iᵀ S b_i of every column i
    mode = torch.tensor(basis.modes.column_mode, device=sums.device)
    height = add_up(along[..., None], mode, len(basis.modes))[..., 0] / pairs
    # C_m = (n/dim) B_m B_mᵀ is 1 at the right answer and has the squared norm pairs · n/dim over all pairs and classes.
    explained = height.square() * pairs * n / dimensions / squares[:, None]
    return LogitStructure(explained, height.where(squares.isfinite()[:, None], torch.nan), squares / (pairs * n))


def _columns(question: Question) -> Columns:
    found = logit_structure(question.subject, question.by, question.basis)
    share, mode = found.explained.max(dim=-1)
    return {"logit_share": found.total, "logit_peak_share": share, "logit_mode": mode_number(mode, share)}


ENTRIES = {
    "logits": Measure(
        title="Share of the logits along cos(2πk(a + b − c)/p)",
        formula="Σ_k ⟨L, C_k⟩² / (‖C_k‖² ‖L‖²), C_k[x, c] = Σ_ρ χ_ρ(s_x c⁻¹), L centred over the classes",
        source="the paper, Eq. 1 and §2; Nanda et al. 2023; Chughtai et al. 2023 for groups",
        cost=FORWARD,
        null="untrained networks: near 0",
        undefined="the logits do not vary over the classes, or are not numbers",
        columns={
            "logit_share": "share along all modes' directions",
            "logit_peak_share": "share along the strongest",
            "logit_mode": "that one, counted from 1",
        },
        compute=_columns,
        needs=frozenset({"basis", "answers", "logits"}),
    ),
}
