import pytest
import torch

from grokscope.errors import InputError
from grokscope.measures.catalogue import MEASURES
from grokscope.measures.restricted import variant_loss
from grokscope.measures.variants import VARIANTS
from measured_stacks import trained


def test_the_losses_are_all_published_ones() -> None:
    assert set(VARIANTS) <= set(MEASURES)
    for name, variant in VARIANTS.items():
        assert variant.definition == f"{MEASURES[name].source}: {MEASURES[name].formula}"
        assert MEASURES[name].title.startswith("Excluded" if "excluded" in name else "Restricted")


def test_every_variant_is_known_by_name() -> None:
    subject = trained("add_mod11")
    for name, variant in VARIANTS.items():
        found = variant_loss(subject, name, torch.tensor([[True, False, False, False, True]]))
        assert found.scored_on == variant.scored_on
        assert found.loss.isfinite().all()
        assert found.scored_on == "train" or "excluded" not in name
    with pytest.raises(InputError, match="no restricted or excluded loss 'exluded'; did you mean 'excluded'"):
        variant_loss(subject, "exluded")
