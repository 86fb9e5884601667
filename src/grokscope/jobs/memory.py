"""What a stack of runs takes of an accelerator's memory, from shapes alone: a plan may be cut where there is none.

Counted are the tensors of a step and of an evaluation by kernels at the moment at which most of them are held. Each is
recorded as a CUDA graph with memory of its own, so both count. `benchmarks/tasks.py` compares this with what is
measured. In the formulas of a transformer, d is the width, m the neurons of an MLP, L the positions and B the rows of a
batch; numbers of the stream have the precision of the weights, most others that of matrix products.
"""

from collections import Counter
from collections.abc import Sequence
from math import ceil, prod

from grokscope.model import layout_of, parameter_group
from grokscope.specs import RunSpec
from grokscope.tasks import named_task
from grokscope.training import CohortKey, cohort_key

__all__ = ["bytes_of_one", "bytes_of_stack", "bytes_per_run"]

BUFFERED = 128  # steps whose batches are made at once
TILE = 16  # rows of a tile of sums that are finished together
PASSED_AT_ONCE = 128  # runs, when they are evaluated
CHUNK_OF_PAIRS, LEAST_CHUNK = 1920, 64  # rows, when they are evaluated


def bytes_of_stack(specs: Sequence[RunSpec], runs: int | None = None) -> int:
    """Memory of so many runs in one stack, by default all of these; PyTorch's own is not counted.

    >>> bytes_of_stack([RunSpec().with_seed(seed) for seed in range(512)]) // 2**30  # GiB
    17
    """
    count = len(specs) if runs is None else runs
    return count * bytes_per_run(specs) + min(count, PASSED_AT_ONCE) * _evaluation(cohort_key(specs[0]))


def bytes_per_run(specs: Sequence[RunSpec]) -> int:
    """Memory of one run in a stack of these, without what an evaluation takes of so many runs at once.

    >>> bytes_per_run([RunSpec("add_mod97")]) > bytes_per_run([RunSpec("add_mod23")])
    True
    """
    key = cohort_key(specs[0])
    rows = max(named_task(name).rows for name in {spec.task for spec in specs})
    return _state(key) + _tables(key, rows) + _sums(key) + _step(key) + _muon(key)


def bytes_of_one(spec: RunSpec, device: str) -> int:
    """Memory of a run that is alone on a device: what it must have at least. Without kernels, attention has its scores.

    >>> bytes_of_one(RunSpec("parity_n40_k3_tokens"), "cpu") > bytes_of_one(RunSpec("parity_n40_k3_tokens"), "cuda")
    True
    """
    key = cohort_key(spec)
    needed = bytes_of_stack([spec])
    if device.startswith("cuda") or key.architecture.kind == "mlp" or key.architecture.attention != "on":
        return needed
    scores = _number(key) * key.architecture.heads * key.sizes.length**2
    return needed + scores * max(key.batch * key.architecture.layers, _rows_at_once(key.sizes.length))


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


def _muon(key: CohortKey) -> int:
    """What is made orthogonal: the momentum of all matrices; of those of one shape the products of a step and sums."""
    if key.optimizer != "muon":
        return 0
    shapes = layout_of(key.architecture, key.sizes).shapes
    matrices = [
        tuple(sorted(shape)) for name, shape in shapes.items() if parameter_group(name, shape, key.sizes) == "matrix"
    ]
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


def _evaluation(key: CohortKey) -> int:
    """Activations of a chunk of rows; nothing is kept for a backward pass."""
    a, length = key.architecture, key.sizes.length
    rows = _rows_at_once(length)
    # In bfloat16 only FSD is read from a pass in full precision, through block 0 at the read position.
    number = _number(key) if key.precision != "bf16" else 2.4
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
