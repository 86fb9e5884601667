"""FSD and rank where the answer is made: the last block's neurons, read as block 0's are."""

from grokscope.measures.question import MOSTLY_CONSTANT, UNTRAINED, Columns, Measure, Question
from grokscope.measures.rank import fourier_rank
from grokscope.measures.spectrum import mode_number
from grokscope.measures.synchronization import fsd

__all__ = ["ENTRIES"]


def _columns(question: Question) -> Columns:
    """FSD, its dominant mode and the median rank of the last hidden layer; of a model of one block, block 0's."""
    waves = question.spectrum(question.subject.hidden_sites[1])
    found = fsd(waves.density)
    return {
        "last_fsd": found.fsd,
        "last_fsd_mode": mode_number(found.mode, found.fsd),
        "last_rank": fourier_rank(waves.power).median,
    }


ENTRIES = {
    "last_block": Measure(
        title="FSD and Fourier rank of the last block's neurons",
        formula="FSD and R̃ of A[s, j] at the last block's MLP, or at its attention output where there is none",
        source="ours: the paper's Definitions 1 and 2, read where the answer is made",
        cost="one forward pass on all pairs",
        null=UNTRAINED,
        undefined=MOSTLY_CONSTANT,
        columns={
            "last_fsd": "FSD of the last block",
            "last_fsd_mode": "its dominant mode, counted from 1; on Z_n the frequency",
            "last_rank": "median rank of its neurons that vary",
        },
        compute=_columns,
    ),
}
