"""What a stack of runs takes of an accelerator's memory, from shapes alone: a plan may be cut where there is none.

Most is taken at one of three moments. When a step is recorded as a CUDA graph, the state has a copy, and the step is
first taken outside the graph; when all rows are first evaluated, the step's graph keeps its memory; and later, when
batches are made beside the graphs of both. A product is tried, the first time, on copies of what it multiplies
(`kernels/product.py`), and these take more than anything else in an evaluation. `tests/jobs/count_memory.py` counts the
tensors of each moment; what `benchmarks/tasks.py` has measured on an H200 is held against the sum by a test. In the
formulas of a transformer, d is the width, m the neurons of an MLP, L the positions and B the rows of a batch; numbers
of the stream have the precision of the weights, most others that of matrix products.
"""

from collections import Counter
from collections.abc import Sequence
from math import ceil, prod

from grokscope.model import layout_of, matrix_shapes
from grokscope.specs import RunSpec
from grokscope.tasks import named_task, train_size
from grokscope.training import CohortKey, cohort_key

__all__ = ["bytes_of_one", "bytes_of_stack"]

BUFFERED = 128  # steps whose batches are made at once
TILE = 16  # rows of a tile of sums that are finished together
PASSED_AT_ONCE = 128  # runs, when they are evaluated
CHUNK_OF_PAIRS, LEAST_CHUNK = 1920, 64  # rows, when they are evaluated
TRIED = 3  # copies of a product's larger factor: of this trial and the last one, and of terms that cancel
SORTED = 6 * 8  # bytes of a number ordered by a random word: both before and after, and as much for sorting
WORKSPACES = 3 * 32 * 2**20  # 32 MiB of cuBLAS for each stream: steps not recorded, what is recorded, evaluations
SPARE = 1 / 10  # of a pass, since PyTorch does not join blocks that tensors of several sizes have left


def bytes_of_stack(specs: Sequence[RunSpec], runs: int | None = None) -> int:
    """Memory of so many runs in one stack on CUDA, by default all of these; PyTorch's own is not counted.

    >>> bytes_of_stack([RunSpec().with_seed(seed) for seed in range(512)]) // 2**30  # GiB
    23
    """
    return WORKSPACES + int(max(moments(specs, len(specs) if runs is None else runs, SPARE)))


def moments(specs: Sequence[RunSpec], runs: int, spare: float = 0.0) -> tuple[float, float, float]:
    """Bytes of so many runs at the moments of recording, of the first evaluation, and of batches made beside graphs."""
    key, evaluated = cohort_key(specs[0]), min(runs, PASSED_AT_ONCE)
    held, made, step = runs * _held(specs), runs * _making_of_batches(specs), (1 + spare) * runs * _step(key)
    recording = made + runs * (_copies(key) + (1 + spare) * _trial_in_step(key)) + step
    first_evaluation = step + (1 + spare) * evaluated * _first_evaluation(key)
    later = made + step + (1 + spare) * evaluated * _evaluation(key)
    return held + recording, held + first_evaluation, held + later


def bytes_of_one(spec: RunSpec, device: str) -> int:
    """Memory of a run that is alone on a device: what it must have at least. Without kernels, attention has its scores.

    >>> bytes_of_one(RunSpec("parity_n40_k3_tokens"), "cpu") > 2 * bytes_of_one(RunSpec("add3_mod23"), "cpu")
    True
    """
    if device.startswith("cuda"):
        return bytes_of_stack([spec])
    key = cohort_key(spec)
    needed = _held([spec]) + _step(key) + _evaluation(key)
    if key.architecture.kind == "mlp" or key.architecture.attention != "on":
        return needed
    scores = _number(key) * key.architecture.heads * key.sizes.length**2
    return needed + scores * max(key.batch * key.architecture.layers, _rows_at_once(key.sizes.length))


def _held(specs: Sequence[RunSpec]) -> int:
    """What one run of these has between steps."""
    key, rows = cohort_key(specs[0]), max(named_task(name).rows for name in {spec.task for spec in specs})
    return _state(key) + _tables(key, rows) + _sums(key)


def _number(key: CohortKey) -> int:
    """Bytes of a stored number."""
    return 8 if key.precision == "float64" else 4


def _product(key: CohortKey) -> int:
    """Bytes of what matrix products read."""
    return 2 if key.precision == "bf16" else _number(key)


def _state(key: CohortKey) -> int:
    """Weights, gradient, moments; Grokfast's averages, a decayed gradient, a direction of norms, rounded weights."""
    tensors = 4 + (key.gradient == "grokfast") + (key.optimizer == "adam") + (key.held_along == "random")
    tensors += 2 * (key.window + 1) * (key.window > 0)
    rounded = 2 if key.precision == "bf16" else 0
    return (_number(key) * tensors + rounded) * layout_of(key.architecture, key.sizes).size


def _copies(key: CohortKey) -> int:
    """Of weights, moments and past gradients, which warming up for a graph changes."""
    tensors = 3 + (key.gradient == "grokfast") + key.window
    return _number(key) * tensors * layout_of(key.architecture, key.sizes).size


def _making_of_batches(specs: Sequence[RunSpec]) -> int:
    """Orders of the training rows in all epochs of the buffered steps; another stream, for steps, has no use of it."""
    kinds = {(spec.task, spec.train_fraction) for spec in specs}
    train, batch = max(train_size(named_task(name), share) for name, share in kinds), cohort_key(specs[0]).batch
    return SORTED * (BUFFERED // ceil(train / batch) + 2) * train


def _trial_in_step(key: CohortKey) -> int:
    """Copies of the neurons that a batch's widest product reads, when one less is in hand than on the way back."""
    a, positions, columns = key.architecture, 1, key.sizes.features
    if a.kind != "mlp":
        positions, columns = (key.sizes.length if a.layers > 1 else 1), a.mlp_width if a.mlp == "on" else a.width
    elif a.layers:
        columns = a.mlp_width
    return (TRIED - 1) * _product(key) * key.batch * positions * columns


def _first_evaluation(key: CohortKey) -> int:
    """An evaluation in which every product is tried, where the copies of what one reads are widest."""
    a, length = key.architecture, key.sizes.length
    rows, number = _rows_at_once(length), _evaluated(key)
    if a.kind == "mlp":
        given = a.width * length if a.embedded else key.sizes.features
        read = (TRIED + 1) * (a.mlp_width if a.layers else given) + (given if a.layers else 0)
        tried = 2 * a.mlp_width**2 if a.layers > 1 else 0  # of weights as wide
        return int(number * (rows * (read + key.sizes.classes) + tried))
    d, m = a.width, a.mlp_width if a.mlp == "on" else 0
    columns = max(4 * d + (TRIED + 2) * m, (TRIED + 4) * d)
    is_by_rows = key.sizes.has_separator and a.attention == "on" and a.readout == "last"
    # Block 0's keys and values for FSD, whose blocks are too small for the queries, keys and values of all positions.
    hidden = 0 if is_by_rows or not key.conditions or a.attention != "on" else 6 * d
    if a.layers > 1:
        return int(rows * number * length * (columns + hidden))
    keys = 0 if is_by_rows else length * (TRIED + 4) * d
    return int(rows * number * (keys + columns + key.sizes.classes))


def _muon(key: CohortKey) -> int:
    """What is made orthogonal: the momentum of all matrices; of those of one shape the products of a step and sums."""
    if key.optimizer != "muon":
        return 0
    matrices = [tuple(sorted(shape)) for shape in matrix_shapes(key.architecture, key.sizes)]
    largest = max(
        (count * (5 * prod(shape) + 4 * shape[0] ** 2) for shape, count in Counter(matrices).items()), default=0
    )
    return _number(key) * (sum(map(prod, matrices)) + largest)


def _tables(key: CohortKey, rows: int) -> int:
    """The task's rows as 64-bit numbers, and as kernels read them; batches of the next steps; sums by condition."""
    length, features, number = key.sizes.length, key.sizes.features, _number(key)
    answers = number * key.sizes.classes if key.is_real else 8
    given, read = (8 * length, 4 * (length + 1)) if length else (number * features, 4)
    chunk = _rows_at_once(length)
    evaluated = ceil(rows / chunk) * chunk * ((read if length else given) + 8)
    conditioned = 16 * key.conditions * key.architecture.mlp_width  # Σ and Σ² of each neuron
    return rows * (given + 2 * answers + 3 * 8 + read) + evaluated + 4 * BUFFERED * key.batch + conditioned


def _sums(key: CohortKey) -> int:
    """Sums of tiles, of which the gradients of biases and LayerNorms are made."""
    a = key.architecture
    columns = a.mlp_width if a.kind == "mlp" else max(1, key.sizes.length) * (a.mlp_width + 9 * a.width)
    return _number(key) * a.layers * ceil(key.batch / TILE) * columns


def _step(key: CohortKey) -> int:
    """A pass forward and back, and what Muon makes of its gradients."""
    return _pass(key) + _muon(key)


def _pass(key: CohortKey) -> int:
    """Activations that the backward pass needs, with what it has in hand where these are most."""
    if key.architecture.kind == "mlp":
        return key.batch * _step_of_mlp(key)
    stored, computed = _number(key), _product(key)
    a, length = key.architecture, key.sizes.length
    d, m = a.width, a.mlp_width if a.mlp == "on" else 0
    attention = {"on": d * stored + 5 * d * computed, "norm": 2 * d * stored, "dropped": 0}[a.attention]
    mlp = {"on": d * stored + (d + 2 * m) * computed, "norm": 2 * d * stored, "dropped": d * stored}[a.mlp]
    whole = length * (attention + mlp)  # a block of which every position goes on
    keys = length * (d * stored + 3 * d * computed) if a.attention == "on" else length * attention
    read = 2 * d * stored + (4 * d + 3 * m) * computed + key.sizes.classes * stored
    blocks = (a.layers - 1) * whole
    on_table = 0
    if key.sizes.has_separator and a.attention == "on" and a.readout == "last":
        # Block 0's queries, keys and values are made on the distinct rows (token, position).
        on_table = (2 * key.sizes.vocabulary + 1) * (d * stored + 4 * d * computed)
        saved = length * (d * stored + 4 * d * computed) if a.layers > 1 else keys
        blocks, keys = (blocks - saved, keys) if a.layers > 1 else (blocks, 0)
    inner = length * (m * computed + 3 * d * stored) if a.layers > 1 else 0  # going back through the block before
    return on_table + key.batch * (blocks + max(keys + read, inner))


def _step_of_mlp(key: CohortKey) -> int:
    """Numbers of one row, in bytes."""
    a = key.architecture
    given = a.width * key.sizes.length if a.embedded else 0
    layers = a.layers * (3 if a.hidden_norm else 2) * a.mlp_width
    in_hand = a.mlp_width if a.layers else 0
    return (given + layers + in_hand) * _product(key) + key.sizes.classes * _number(key)


def _rows_at_once(length: int) -> int:
    """Rows that are evaluated at once."""
    return CHUNK_OF_PAIRS if length <= 3 else max(LEAST_CHUNK, CHUNK_OF_PAIRS * 3 // length)


def _evaluated(key: CohortKey) -> float:
    """Bytes of a number; in bfloat16 only FSD has a pass in full precision, through block 0 at the read position."""
    return _number(key) if key.precision != "bf16" else 2.4


def _evaluation(key: CohortKey) -> int:
    """Activations of a chunk of rows; nothing is kept for a backward pass, and no product is tried any more."""
    a, length = key.architecture, key.sizes.length
    rows = _rows_at_once(length)
    number = _evaluated(key)
    if a.kind == "mlp":
        given = a.width * length if a.embedded and a.layers < 2 else key.sizes.features
        hidden = (min(a.layers, 2) + 1 + a.hidden_norm * (a.layers < 2)) * a.mlp_width if a.layers else 0
        return int(rows * number * (hidden + given + key.sizes.classes))
    m = a.mlp_width if a.mlp == "on" else 0
    columns = max(2 * m + 5 * a.width, 6 * a.width)
    is_by_rows = key.sizes.has_separator and a.attention == "on" and a.readout == "last"
    if a.layers == 1:
        keys = 0 if is_by_rows else 4 * length * a.width
        return int(rows * number * (keys + columns + key.sizes.classes))
    return int(rows * number * length * columns)
