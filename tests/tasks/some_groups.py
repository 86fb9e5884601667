"""Groups for Hypothesis: families, products, and relabellings that hide where they come from."""

import numpy as np
from hypothesis import strategies as st

from grokscope.tasks import Group, named_group

SMALL = [
    *(f"Z{n}" for n in (1, 2, 3, 4, 5, 8, 9, 12, 15, 30)),
    *(f"D{n}" for n in (3, 4, 5, 6, 9, 12)),
    *("Q8", "Q12", "Q16", "S3", "S4", "S5", "A3", "A4", "A5", "Aff3", "Aff5", "Aff7"),
    *("SL2_2", "SL2_3", "SL2_5", "PSL2_2", "PSL2_3", "PSL2_5", "PSL2_7"),
    *("Z2xZ2", "Z2xZ2xZ2", "Z3xS3", "Z2xQ8", "D4xZ3", "S3xS3", "Z3xA4"),
]
named_groups = st.sampled_from(SMALL).map(named_group)


@st.composite
def relabelled_groups(draw: st.DrawFn) -> Group:
    group = draw(named_groups)
    labels = np.random.default_rng(draw(st.integers(0, 2**32))).permutation(group.order)
    return group.relabelled(labels)


any_groups = st.one_of(named_groups, relabelled_groups())
