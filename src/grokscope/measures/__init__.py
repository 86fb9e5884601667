"""Numbers made of activations and weights: pure functions over any leading run axes; `MEASURES` lists them by name."""

from grokscope.measures.ablation import Ablation, Method, ablation
from grokscope.measures.catalogue import MEASURES, measure
from grokscope.measures.commutator import Commutator, commutator_defect
from grokscope.measures.concentration import Concentration, gini, inverse_participation_ratio, spectral_entropy
from grokscope.measures.control import control_basis
from grokscope.measures.filters import Change, FilterKind, mode_filter
from grokscope.measures.formula import Formula, Wave
from grokscope.measures.fourier_kan import FourierKan, formulas, fourier_kan, refitted, trained_fourier_kan
from grokscope.measures.logit_scale import logit_scale
from grokscope.measures.logit_structure import LogitStructure, logit_structure
from grokscope.measures.mode_choice import key_modes, top_modes
from grokscope.measures.norms import Norms, norms
from grokscope.measures.nulls import (
    ExactTest,
    NullSample,
    Statistic,
    exact_test,
    gaussian_null,
    strongest_mode_chances,
    uniform_null,
    uniform_p_value,
)
from grokscope.measures.output_entropy import output_entropy
from grokscope.measures.patching import PatchEffect, drawn_pairs, head_patching, path_patching
from grokscope.measures.question import Measure, Question
from grokscope.measures.rank import RankResult, explained_at_rank, fourier_rank, mean_explained
from grokscope.measures.representation import Representation, representation
from grokscope.measures.restricted import (
    FilteredLoss,
    excluded_loss_by_mode,
    filtered_loss,
    variant_loss,
)
from grokscope.measures.scores import Scores, scores
from grokscope.measures.singular_values import SingularSpectrum, singular_spectrum, weight_matrices
from grokscope.measures.snapshot import Snapshot, snapshot
from grokscope.measures.spectrum import Spectrum, spectrum
from grokscope.measures.surrogates import (
    Kept,
    answer_permutation_null,
    permuted_answers,
    phase_randomized,
    untrained_null,
)
from grokscope.measures.synchronization import FsdResult, fsd, fsd_gen, fsd_top_k
from grokscope.measures.updates import Updates, UpdateSpectrum, update_spectrum, updates
from grokscope.measures.variants import VARIANTS, Variant
from grokscope.measures.weight_spectra import (
    WeightSpectrum,
    embedding_spectrum,
    neuron_logit_map,
    neuron_logit_spectrum,
)

__all__ = [
    "MEASURES",
    "VARIANTS",
    "Ablation",
    "Change",
    "Commutator",
    "Concentration",
    "ExactTest",
    "FilterKind",
    "FilteredLoss",
    "Formula",
    "FourierKan",
    "FsdResult",
    "Kept",
    "LogitStructure",
    "Measure",
    "Method",
    "Norms",
    "NullSample",
    "PatchEffect",
    "Question",
    "RankResult",
    "Representation",
    "Scores",
    "SingularSpectrum",
    "Snapshot",
    "Spectrum",
    "Statistic",
    "UpdateSpectrum",
    "Updates",
    "Variant",
    "Wave",
    "WeightSpectrum",
    "ablation",
    "answer_permutation_null",
    "commutator_defect",
    "control_basis",
    "drawn_pairs",
    "embedding_spectrum",
    "exact_test",
    "excluded_loss_by_mode",
    "explained_at_rank",
    "filtered_loss",
    "formulas",
    "fourier_kan",
    "fourier_rank",
    "fsd",
    "fsd_gen",
    "fsd_top_k",
    "gaussian_null",
    "gini",
    "head_patching",
    "inverse_participation_ratio",
    "key_modes",
    "logit_scale",
    "logit_structure",
    "mean_explained",
    "measure",
    "mode_filter",
    "neuron_logit_map",
    "neuron_logit_spectrum",
    "norms",
    "output_entropy",
    "path_patching",
    "permuted_answers",
    "phase_randomized",
    "refitted",
    "representation",
    "scores",
    "singular_spectrum",
    "snapshot",
    "spectral_entropy",
    "spectrum",
    "strongest_mode_chances",
    "top_modes",
    "trained_fourier_kan",
    "uniform_null",
    "uniform_p_value",
    "untrained_null",
    "update_spectrum",
    "updates",
    "variant_loss",
    "weight_matrices",
]
