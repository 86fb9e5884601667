"""Ridge regression, whose training is known in closed form: when a run memorises and when it groks.

A linear model w·x under gradient descent on the mean squared error, with weight decay, learns each eigenvector of its
inputs' second moments XᵀX/n apart, at a rate that the eigenvalue gives. Training errors weigh directions by their
eigenvalues and validation errors do not: what has a small eigenvalue is memorised late or never has to be, and delays
generalisation. Levi, Beck and Bar-Sinai, "Grokking in Linear Estimators", 2023 (arXiv:2310.16441), solve gradient flow;
Xu, Vardi and Safran, "To Grok Grokking: Provable Grokking in Ridge Regression", 2026 (arXiv:2601.19791), bound gradient
descent with weight decay. Here the steps are exact, of discrete gradient descent and of the sampled rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from grokscope.errors import require, shown
from grokscope.shapes import Float, Int
from grokscope.specs import RunSpec
from grokscope.tasks import Task, named_task, train_size

__all__ = [
    "RidgeDescent",
    "RidgeTiming",
    "expected_error",
    "first_step_within",
    "ridge_descent",
    "ridge_timing",
    "squared_errors",
]

SPACING = 1.005  # between the steps at which an error is looked for below a limit
AT_ONCE = 128  # steps whose weights are in memory together
BISECTIONS = 60
Steps = Float[np.ndarray, " steps"] | Int[np.ndarray, " steps"]
Errors = Float[np.ndarray, " steps"]


@dataclass(frozen=True, eq=False, repr=False)
class RidgeDescent:
    """Gradient descent on a linear regression, along the eigenvectors v_i of XᵀX/n."""

    eigenvalues: Float[np.ndarray, " features"]
    """μ_i in rising order; 0 for what no row has a part in."""
    vectors: Float[np.ndarray, "features features"]
    """v_i, one in each column."""
    start: Float[np.ndarray, "features outputs"]
    """u_i(0), the initial weights along v_i."""
    limit: Float[np.ndarray, "features outputs"]
    """u_i(∞) = (v_i·Xᵀy/n)/(μ_i + ζ), the ridge solution; of μ_i + ζ = 0 the start, which stays."""
    rate: float
    """γ."""
    penalty: float
    """ζ."""

    @property
    def factors(self) -> Float[np.ndarray, " features"]:
        """q_i = 1 − γ(μ_i + ζ), by which each step multiplies the distance from the limit."""
        found: np.ndarray = 1 - self.rate * (self.eigenvalues + self.penalty)
        return found

    def along(self, steps: Steps) -> Float[np.ndarray, "steps features outputs"]:
        """u_i(t) = u_i(∞) + q_iᵗ (u_i(0) − u_i(∞)), at whole steps and between them."""
        left = self.factors ** np.asarray(steps, dtype=np.float64)[:, None]
        found: np.ndarray = self.limit + left[..., None] * (self.start - self.limit)
        return found

    def weights(self, steps: Steps) -> Float[np.ndarray, "steps features outputs"]:
        """W(t) = Σ_i v_i u_i(t)."""
        return _on_features(self.vectors, self.along(steps))


def _on_features(
    matrix: Float[np.ndarray, "rows features"], weights: Float[np.ndarray, "steps features outputs"]
) -> Float[np.ndarray, "steps rows outputs"]:
    """One product for all steps."""
    found: np.ndarray = np.tensordot(weights, matrix, axes=(1, 1)).swapaxes(1, 2)
    return found


def ridge_descent(
    inputs: Float[np.ndarray, "rows features"],
    answers: Float[np.ndarray, "rows outputs"],
    start: Float[np.ndarray, "features outputs"],
    rate: float,
    penalty: float = 0.0,
) -> RidgeDescent:
    """W ← (1 − γζ) W − γ (XᵀXW − XᵀY)/n, descent on ½(‖XW − Y‖²/n + ζ‖W‖²) with step size γ, in closed form.

    Along v_i it is u ← (1 − γ(μ_i + ζ)) u + γ v_i·XᵀY/n, a geometric sequence. The rate must be so small that none
    oscillates, γ(μ_max + ζ) < 1. Gradient flow has e^{−x_i t} in place of q_iᵗ, x_i = γ(μ_i + ζ): as
    x ≤ −ln(1 − x) ≤ x/(1 − x), it is behind by a factor in steps between 1 and 1/(1 − x_max), 1 + x/2 for small x.

    >>> found = ridge_descent(np.eye(2), np.array([[1.0], [0.0]]), start=np.zeros((2, 1)), rate=0.5, penalty=0.5)
    >>> found.weights(np.array([0, 1, 100]))[:, 0, 0].round(6).tolist()  # to 0.5/(0.5 + 0.5), halved at each step
    [0.0, 0.25, 0.5]
    """
    require(rate > 0, "the rate must be positive", rate)
    require(penalty >= 0, "the penalty must be at least 0", penalty)
    rows = len(inputs)
    moments, vectors = np.linalg.eigh(inputs.T @ inputs / rows)
    # Below the rounding of the largest, an eigenvalue is 0: with n rows all but n are.
    eigenvalues = np.where(moments > 1e-12 * moments.max(), moments, 0.0)
    fastest = rate * (float(eigenvalues.max()) + penalty)
    require(fastest < 1, "rate × (largest eigenvalue + penalty) must stay below 1", fastest)
    along, begin = vectors.T @ (inputs.T @ answers) / rows, vectors.T @ start
    moves = (eigenvalues + penalty > 0)[:, None]
    limit = np.where(moves, along, begin) / np.where(moves, (eigenvalues + penalty)[:, None], 1.0)
    return RidgeDescent(eigenvalues, vectors, begin, limit, rate, penalty)


def squared_errors(
    descent: RidgeDescent,
    inputs: Float[np.ndarray, "rows features"],
    answers: Float[np.ndarray, "rows outputs"],
) -> Callable[[Steps], Errors]:
    """The mean squared error on any rows, those trained on or fresh ones, as a function of the step.

    >>> rows, answers = np.eye(2), np.array([[1.0], [0.0]])
    >>> error = squared_errors(ridge_descent(rows, answers, np.zeros((2, 1)), rate=0.5), rows, answers)
    >>> error(np.array([0, 1, 2])).round(6).tolist()  # along e_1 each step leaves 1 − 0.5 · 0.5
    [0.5, 0.28125, 0.158203]
    """
    features = inputs.shape[1]
    # ‖XW − Y‖ = ‖R_x W − R_y‖ with [X Y] = QR: as exact, and no longer than features + outputs.
    _, reduced = np.linalg.qr(np.concatenate([inputs, answers], axis=1))
    along, given = reduced[:, :features] @ descent.vectors, reduced[:, features:]

    def errors(steps: Steps) -> Errors:
        parts = np.array_split(np.asarray(steps, dtype=np.float64), max(1, len(steps) // AT_ONCE))
        away = (_on_features(along, descent.along(part)) - given for part in parts)
        return np.concatenate([np.square(one).sum(axis=(1, 2)) for one in away]) / answers.size

    return errors


def expected_error(
    eigenvalues: Float[np.ndarray, " features"],
    rate: float,
    penalty: float = 0.0,
    *,
    rows: int,
    start_std: float,
    teacher_norm: float = 1.0,
    noise: float = 0.0,
) -> Callable[[Steps], Errors]:
    """The error on a fresh row from the eigenvalues alone, averaged over teachers, noise and initial weights.

    Rows are N(0, 1) with answers w*·x + ε, ε of standard deviation σ = `noise`; w* has the length `teacher_norm` in
    any of the d directions, and initial weights N(0, s²), s = `start_std`. Along v_i, of w − w* is left

        q_iᵗ u_i(0) − (1 − (1 − q_iᵗ) μ_i/(μ_i + ζ)) w*_i + (1 − q_iᵗ) (v_i·Xᵀε/n)/(μ_i + ζ),

    three independent parts with mean squares that add up to the error:

        E(t) = σ² + Σ_i [q_i²ᵗ s² + (1 − (1 − q_iᵗ) μ_i/(μ_i + ζ))² ‖w*‖²/d + (1 − q_iᵗ)² σ²μ_i/(n(μ_i + ζ)²)].

    One run differs from it as its teacher and weights do from their mean: by some 1/√d.

    >>> error = expected_error(np.array([0.0, 1.0]), rate=0.5, rows=1, start_std=0.0)
    >>> error(np.array([0, 1, 100])).round(6).tolist()  # of the direction that no row has a part in, half is left
    [1.0, 0.625, 0.5]
    """
    total = np.asarray(eigenvalues, dtype=np.float64) + penalty
    share = np.where(total > 0, eigenvalues, 0.0) / np.where(total > 0, total, 1.0)
    from_noise = noise**2 * share / (rows * np.where(total > 0, total, 1.0))

    def errors(steps: Steps) -> Errors:
        left = (1 - rate * total) ** np.asarray(steps, dtype=np.float64)[:, None]
        teacher = teacher_norm**2 * (1 - (1 - left) * share) ** 2 / len(total)
        parts = left**2 * start_std**2 + teacher + (1 - left) ** 2 * from_noise
        return noise**2 + np.asarray(parts.sum(axis=1))

    return errors


def first_step_within(error: Callable[[Steps], Errors], limit: float, last: int) -> float | None:
    """The first step, with its fraction, at which an error is at most a limit; None if not by the last step.

    Looked for at 0, 1 and steps each half a per cent later, then refined: a dip below the limit that is over within
    half a per cent of the steps so far may be missed.

    >>> first_step_within(lambda steps: 1000 * 0.5**steps, limit=1.0, last=100)  # log₂ 1000
    9.965784284662087
    """
    count = int(np.ceil(np.log(max(last, 1)) / np.log(SPACING)))
    steps = np.unique(np.concatenate([[0.0], np.minimum(SPACING ** np.arange(count + 1), last)]))
    within = error(steps) <= limit
    if not within.any():
        return None
    found = int(within.argmax())
    if found == 0:
        return 0.0
    low, high = float(steps[found - 1]), float(steps[found])
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if error(np.array([middle]))[0] <= limit else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class RidgeTiming:
    """When a run memorises and groks, before it is trained."""

    memorized: float | None
    """The first step, with its fraction, at which the training error counts as success; None if not by the last."""
    grokked: float | None
    """The same of the validation rows."""
    descent: RidgeDescent
    """The whole trajectory."""
    deviation: float
    """r: how far AdamW's steps may fall short of gradient descent's, relative to them."""


def ridge_timing(run: RunSpec) -> RidgeTiming:
    """When a run of a linear model on real answers memorises and groks, from its rows and initial weights alone.

    AdamW with β₁ = 0 and an ε far above every gradient is gradient descent. Its step is η g/(√v̂ + ε) with √v̂ ≤ max|g|,
    each coordinate between 1/(1 + r) and 1 times (η/ε) g, r = max|g|/ε; weight decay multiplies by 1 − ηλ as always.
    With g = (2/m)(XᵀXW − XᵀY)/n for m outputs this is `ridge_descent` with

        γ = 2η/(εm)  and  ζ = ηλ/γ = λεm/2.

    `deviation` is r, from a bound of the gradient along the whole trajectory: its part along each v_i lies between its
    first and its last value. Events come later than predicted where steps fall short, without decay by a factor of at
    most 1 + r if all coordinates do so alike; otherwise they move by a share of first order in r. A run's own memorised
    and grokked steps are its first evaluations at or after these.

    >>> from grokscope.specs import Architecture, Training
    >>> descent = Training(steps=4000, learning_rate=1e4, epsilon=1e6, beta1=0.0, weight_decay=2e-7, batch_size=None,
    ...     loss="mse")  # γ = 0.02 and ζ = 0.1
    >>> linear = Architecture(kind="mlp", layers=0, biases=False)
    >>> found = ridge_timing(RunSpec("ridge_d20_n60", architecture=linear, training=descent))
    >>> found.memorized < found.grokked, found.deviation < 1e-5
    (True, True)
    """
    from grokscope.tasks import split  # these load torch, which no other law needs
    from grokscope.training import Cohort

    task = named_task(run.task)
    _require_descent(run, task)
    assert task.vectors is not None
    training, parts = run.training, split(task, run.train_fraction, run.seeds.split)
    rate = 2 * training.learning_rate / (training.epsilon * task.classes)
    penalty = training.learning_rate * training.known_weight_decay / rate
    start = Cohort([run]).initial()[0].double().numpy().reshape(task.features, task.classes)
    groups = [(task.vectors[rows], task.answers[rows]) for rows in (parts.train, parts.validation)]
    descent = ridge_descent(*groups[0], start, rate, penalty)
    memorized, grokked = (
        first_step_within(squared_errors(descent, *group), task.success_error, training.steps) for group in groups
    )
    return RidgeTiming(memorized, grokked, descent, _largest_gradient(descent) / training.epsilon)


def _largest_gradient(descent: RidgeDescent) -> float:
    """A bound of |g| in every coordinate and at every step: its length with each part at its larger end."""
    total = (descent.eigenvalues + descent.penalty)[:, None]
    along = total * descent.limit
    ends = [descent.eigenvalues[:, None] * weights - along for weights in (descent.start, descent.limit)]
    largest = np.maximum(*map(np.abs, ends))
    return float(2 / descent.start.shape[1] * np.sqrt(np.square(largest).sum()))


def _require_descent(run: RunSpec, task: Task) -> None:
    """Reject what has no closed form."""
    require(
        task.is_real and task.features, "the closed form is of real answers to vectors, as ridge_d100_n200", task.name
    )
    training, architecture = run.training, run.architecture
    batch = training.batch_size or train_size(task, run.train_fraction)
    needed: dict[str, tuple[Any, Any]] = {
        "kind": (architecture.kind, "mlp"),
        "layers": (architecture.layers, 0),
        "biases": (architecture.biases, False),
        "loss": (training.loss, "mse"),
        "beta1": (training.beta1, 0.0),
        "gradient": (training.gradient, "plain"),
        "optimizer": (training.optimizer, "adamw"),
        "head_decay": (training.head_decay, 1.0),
        "sampling": (training.sampling, "epochs"),
        "batch_size": (None if batch >= train_size(task, run.train_fraction) else batch, None),
        "warmup_steps": (training.warmup_steps, 0),
        "clip_norm": (training.clip_norm, None),
        "weight_decay_schedule": (training.weight_decay_schedule, ()),
        "shuffled_labels": (run.shuffled_labels, False),
        "fork": (run.fork, None),
        "trigger": (run.trigger, None),
        "control": (run.control, None),
        "release": (run.release, None),
    }
    for name, (value, expected) in needed.items():
        require(value == expected, f"the closed form of gradient descent needs {name} = {shown(expected)}", value)
