import copy
import math
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_models import SITE, Attended, attended, pairs_of
from torch import Tensor, nn

import grokscope
from grokscope import Monitor
from grokscope.attach import foreign_measures
from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.measures import MEASURES, Question, measure
from grokscope.runs import Store
from grokscope.runs.measuring import measure_stack
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import Architecture, Cadence, RunSpec, Training
from grokscope.tasks import named_task, split

TINY = RunSpec(
    task="add_mod11",
    train_fraction=0.5,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=24),
    training=Training(steps=60, batch_size=16),
    checkpoints=Cadence(every=60),
    measurements=Cadence(every=60),
).with_seed(0)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> grokscope.Run:
    path = tmp_path_factory.mktemp("runs")
    run_all([TINY], Store(path), compiled=False)
    return next(iter(grokscope.open(path)))


# What it says is what grokscope says of its own models.


def test_a_grokscope_model_as_a_plain_module_gives_the_same_numbers(stored: grokscope.Run) -> None:
    module, subject = stored.module(60), stored.subject([60])
    sites = [name for name, _ in module.named_modules() if name.endswith("hook_post")]
    site: Any = sites[0] if sites else _hidden_of(module)
    names = ["fsd", "fsd_k", "fsd_gen", "rank", "concentration", "fourier_kan"]
    monitor = Monitor("add_mod11", sites=site, measures=names, train=subject.is_train[0])
    seen = monitor.evaluate(module)
    expected = measure(Question(subject), [*names, "memorization", "norms"])[0]
    shared = set(seen) & set(expected) - {"undefined"}
    assert {"fsd", "fsd_2", "fsd_gen_3", "rank", "ipr", "kan_r2", "train_loss", "validation_accuracy", "norm"} <= shared
    for column in shared:
        assert seen[column] == pytest.approx(expected[column], rel=1e-5, nan_ok=True), column


def test_restricted_and_excluded_losses_are_those_of_our_own_runs(stored: grokscope.Run) -> None:
    module, subject = stored.module(60), stored.subject([60])
    monitor = Monitor("add_mod11", _hidden_of(module), ["trig", "excluded"], train=subject.is_train[0])
    seen = monitor.evaluate(module)
    expected = measure_stack(subject, ["trig", "excluded"])[0]
    assert seen["trig"] == pytest.approx(expected["trig"], rel=1e-5)
    assert seen["excluded"] == pytest.approx(expected["excluded"], rel=1e-5)
    assert seen["trig_modes"] == expected["trig_modes"]


def test_a_monitor_prints_on_one_line() -> None:
    monitor = Monitor("add_mod11", sites="1", measures=["fsd", "rank"])
    assert repr(monitor) == "<Monitor of add_mod11: fsd, rank; 0 evaluations>"


def test_given_keys_are_used_at_every_evaluation(stored: grokscope.Run) -> None:
    module = stored.module(60)
    every = Monitor("add_mod11", _hidden_of(module), ["trig"], keys=range(1, 6)).evaluate(module)
    one = Monitor("add_mod11", _hidden_of(module), ["trig"], keys=[1]).evaluate(module)
    assert (every["trig_modes"], one["trig_modes"]) == (5, 1)
    assert every["trig"] != one["trig"]


def _hidden_of(module: nn.Module) -> Any:
    """The neurons of a grokscope module, by its own hook."""
    return next(name for name, _ in module.named_modules() if name.endswith(("hook_post", "mlp.act", "activation")))


def test_every_offered_measure_gives_numbers() -> None:
    row = Monitor("add_mod7", SITE, list(foreign_measures())).evaluate(attended())
    assert not row["undefined"]
    assert all(math.isfinite(value) for value in row.values() if not isinstance(value, str))


def test_chunks_change_nothing() -> None:
    model = attended()
    whole, parts = (Monitor("add_mod7", SITE, chunk=size).evaluate(model) for size in (49, 5))
    assert whole.pop("undefined") == parts.pop("undefined") == ""
    assert whole == pytest.approx(parts, rel=1e-5)


# Sites, positions, encoders, readouts.


def test_an_input_a_callable_and_a_second_site_are_read() -> None:
    model = attended()

    def hidden(model: nn.Module, tokens: Tensor) -> Tensor:
        stream = model.embed(tokens)
        stream = stream + model.attention(stream, stream, stream, need_weights=False)[0]
        return model.mlp[1](model.mlp[0](stream))

    row = Monitor("add_mod7", [SITE, hidden, "mlp.2.input"], ["fsd", "rank"]).evaluate(model)
    for column in ("fsd", "rank", "answer_share"):
        assert row[column] == row[f"{column}@hidden"] == row[f"{column}@mlp.2.input"]


def test_another_position_is_another_reading() -> None:
    model = attended()
    last, first, every = (Monitor("add_mod7", SITE, position=p).evaluate(model) for p in (-1, 0, None))
    assert last["answer_share"] != first["answer_share"] != every["answer_share"]
    with pytest.raises(InputError, match=r"the site 'mlp.1' has 3 positions, got position 5"):
        Monitor("add_mod7", SITE, position=5).evaluate(model)


def test_one_hot_pairs_and_four_tokens_are_encoded() -> None:
    torch.manual_seed(0)
    mlp = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 7))
    assert "fsd" in Monitor("add_mod7", "1", encode="one_hot").evaluate(mlp)
    four = Attended(9, 9)
    assert Monitor("add_mod7", SITE, encode="a_op_b_equals").evaluate(four)["loss"] > 0


def test_a_dict_a_tuple_and_outputs_of_several_kinds_are_understood() -> None:
    model = attended()

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, first: Tensor, second: Tensor) -> dict[str, Tensor]:
            tokens = torch.stack([first, second, torch.full_like(first, 7)], dim=1)
            return {"logits": self.inner(tokens)[:, None].expand(-1, 3, -1), "loss": torch.zeros(())}

    plain = Monitor("add_mod7", SITE).evaluate(model)
    by_name = Monitor("add_mod7", f"inner.{SITE}", encode=lambda a, b: {"second": b, "first": a}).evaluate(Wrapped())
    in_order = Monitor("add_mod7", f"inner.{SITE}", encode=lambda a, b: (a, b)).evaluate(Wrapped())
    read = Monitor(
        "add_mod7", f"inner.{SITE}", encode=lambda a, b: (a, b), readout=lambda out: out["logits"][:, 0]
    ).evaluate(Wrapped())
    assert plain == by_name == in_order == read


# The log.


def test_a_timeline_is_read_off_the_log() -> None:
    _, _, is_train = pairs_of("add_mod7")
    monitor = Monitor("add_mod7", SITE, train=is_train)
    monitor.measure(attended(), 0)
    assert monitor.timeline().grokked is None
    with pytest.raises(InputError, match="needs the training pairs"):
        Monitor("add_mod7", SITE).timeline()


@pytest.mark.parametrize(("task", "synchronised"), [("add_mod7", 200), ("S3", 100)])
def test_a_groups_timeline_asks_for_what_its_kept_log_asks_for(task: str, synchronised: int) -> None:
    monitor = Monitor(task, train=pairs_of(task)[2])
    evaluations = zip([0, 100, 200], [0.1, 0.6, 0.9], strict=True)
    monitor.load_state_dict(
        {
            "log": [
                {"step": at, "fsd": fsd, "train_accuracy": 1.0, "validation_accuracy": 0.1} for at, fsd in evaluations
            ]
        }
    )
    kept = RunRecord(RunSpec(task), RunOutcome("grokked"), monitor.columns(), {})
    assert monitor.timeline().sync.step == kept.timeline.sync.step == synchronised


def test_a_multiple_that_no_step_hits_is_evaluated_at_the_next_one() -> None:
    model, monitor = attended(), Monitor("add_mod7", SITE, every=100)
    with monitor.attach(model):
        rows = [monitor.step(step) for step in range(64, 700, 64)]
    assert [row["step"] for row in rows if row is not None] == [128, 256, 320, 448, 512, 640]
    resumed = Monitor("add_mod7", SITE, every=100)
    resumed.load_state_dict({"log": monitor.log[:3]})
    assert [step for step in range(384, 513, 64) if resumed.is_due(step)] == [448, 512]
    with resumed.attach(model):
        for step in range(384, 700, 64):
            resumed.step(step)
    assert resumed.log == monitor.log


def test_steps_of_every_kind_are_whole_numbers_in_the_log() -> None:
    monitor = Monitor("add_mod7", SITE)
    for step in (0, np.int64(100), torch.tensor(200), 300.0):
        monitor.measure(attended(), step)
    assert [(type(row["step"]), row["step"]) for row in monitor.log] == [(int, 0), (int, 100), (int, 200), (int, 300)]


# Training pairs.


def test_training_pairs_are_the_same_as_indices_mask_square_or_pairs() -> None:
    task, rows = named_task("add_mod7"), split(named_task("add_mod7"), 0.5, seed=0)
    square = np.zeros((7, 7), dtype=bool)
    square[tuple(task.inputs[rows.train].T)] = True
    forms = [rows.train, rows.train.tolist(), torch.tensor(rows.train.copy()), rows.mask, square]
    forms += [task.inputs[rows.train], [tuple(pair) for pair in task.inputs[rows.train].tolist()]]
    for form in forms:
        assert Monitor(task, SITE, train=form).is_train.tolist() == rows.mask.tolist()
    order = torch.randperm(49)
    assert set(Monitor(task, SITE, train=order[:20]).is_train.nonzero()[:, 0].tolist()) == set(order[:20].tolist())


# Copies.


def read_mean(model: nn.Module, tokens: Tensor) -> Tensor:
    return model.embed(tokens).mean(dim=1)


def pickled(monitor: Monitor) -> Monitor:
    return pickle.loads(pickle.dumps(monitor))  # noqa: S301 (of this very process)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("task", ["mult_mod7", [[0, 1, 2], [1, 2, 0], [2, 0, 1]], [[0, 1, 2], [1, 2, 0], [2, 0, 0]]])
def test_a_copy_has_settings_and_log_and_neither_model_nor_hooks(task: Any, copied: Any) -> None:
    symbols = 7 if task == "mult_mod7" else 3
    model = Attended(symbols + 1, symbols)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* is not a group's")
        monitor = Monitor(task, [SITE, read_mean], ["answer_share", "fsd"], every=5, train=torch.arange(symbols))
    with monitor.attach(model, torch.optim.AdamW(model.parameters())):
        monitor.step(0)
        other = copied(monitor)
        assert repr(other.log) == repr(monitor.log)  # NaN is NaN
        with pytest.raises(InputError, match="the monitor watches no model"):
            other.step(5)
        monitor.step(5)
    assert len(other.log) == 1
    assert other.optimizers == {}
    assert other.task.answers.tolist() == monitor.task.answers.tolist()
    known = {name: value for name, value in monitor.log[-1].items() if name != "weight_decay"}
    assert repr(other.evaluate(model, 5)) == repr(known)
    with other.attach(model):
        other.step(5)


def test_a_copy_does_not_write_into_the_log_of_the_first(tmp_path: Path) -> None:
    monitor = Monitor("add_mod7", SITE, train=torch.arange(20), out=tmp_path)
    before, model = pickled(monitor), attended()
    monitor.measure(model, 0)
    content = (next(iter(Store(tmp_path))).path / "log.jsonl").read_bytes()
    for other in (before, copy.copy(monitor)):
        with pytest.raises(InputError, match="holds a log already; give Monitor another seed or model_name, or go on"):
            other.measure(model, 100)
    assert (next(iter(Store(tmp_path))).path / "log.jsonl").read_bytes() == content


# Without sites.


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, r"^fsd and rank are read at a site: give Monitor\(sites=…\), such as 'mlp.1' of Attended; measures=\[\]"),
        ({"measures": ["trig", "excluded"]}, r"^trig and excluded are read at a site: .* of Attended, or keys=…;"),
        ({"measures": ["logits", "fsd"], "keys": [1]}, "^fsd is read at a site"),
    ],
)
def test_what_is_read_at_a_site_is_rejected_without_one(given: Any, sentence: str) -> None:
    monitor = Monitor("add_mod7", **given)
    for ask in (monitor.check, monitor.evaluate, lambda model: monitor.attach(model).__enter__()):
        with pytest.raises(InputError, match=sentence):
            ask(attended())
    assert monitor.log == []


def test_what_needs_logits_alone_is_the_same_without_a_site() -> None:
    names = ["logits", "trig", "excluded", "cube_restricted", "cube_excluded"]
    model, train = attended(), pairs_of("add_mod7")[2]
    alone = Monitor("add_mod7", measures=names, keys=[1, 3], train=train).evaluate(model)
    beside = Monitor("add_mod7", SITE, names, keys=[1, 3], train=train).evaluate(model)
    assert {"trig", "excluded", "logit_share"} <= alone.keys()
    assert beside.keys() - alone.keys() == {"answer_share"}
    assert alone == {name: beside[name] for name in alone}


def test_without_a_site_undefined_logits_have_their_reason() -> None:
    model = attended()
    with torch.no_grad():
        model.head.weight[0, 0] = torch.nan
    row = Monitor("add_mod7", measures=["logits"]).evaluate(model)
    assert math.isnan(row["logit_share"])
    assert row["undefined"] == (
        "logit_share and 2 more columns: not defined for this model or checkpoint; logits are not numbers"
    )
    assert Monitor("add_mod7", measures=[]).evaluate(attended()).keys() == {
        "step", "accuracy", "loss", "norm", "undefined"
    }  # fmt: skip


# What cannot be used.


def test_nan_is_logged_as_undefined_and_stops_nothing() -> None:
    model = attended()
    with torch.no_grad():
        model.mlp[0].weight[0, 0] = torch.nan
    monitor = Monitor("add_mod7", SITE, ["fsd", "rank", "trig"])
    with monitor.attach(model):
        row = monitor.step(0)
    assert row is not None
    assert math.isnan(row["fsd"])
    assert math.isnan(row["loss"])
    assert row["undefined"] == "activations at mlp.1 are not numbers; logits are not numbers"


class Sized(nn.Module):
    """Gives as many classes as it is told."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.act = nn.Identity()
        self.table = nn.Embedding(8, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.act(self.table(tokens))


@pytest.mark.parametrize(
    ("monitor", "model", "sentence"),
    [
        (
            lambda: Monitor("add_mod7", "mlp.act"),
            attended,
            r"Attended has no site 'mlp.act'; the nearest are 'mlp.\d'",
        ),
        (
            lambda: Monitor("add_mod7", SITE, encode="one_hot"),
            attended,
            r"Attended rejects what encode gives, float32 \[2, 14\]: RuntimeError: ",
        ),
        (
            lambda: Monitor("add_mod97", SITE),
            attended,
            r"Attended rejects what encode gives, int64 \[2, 3\] with tokens up to 97: IndexError: index out of range",
        ),
        (
            lambda: Monitor("add_mod7", "act"),
            lambda: Sized(5),
            r"Sized has 5 classes, and add_mod7 has 7 answers \(or 8 with the other tokens\); give the task",
        ),
        (lambda: Monitor("add_mod7", "act"), lambda: Sized(50), "Sized has 50 classes, and add_mod7 has 7 answers"),
        (
            lambda: Monitor("add_mod7", lambda model, tokens: torch.zeros(3, 4)),
            attended,
            r"must give numbers \[inputs, …\], got float32 \[3, 4\] for 2 inputs",
        ),
        (
            lambda: Monitor("add_mod7", lambda model, tokens: "text"),
            attended,
            "must give a tensor, got str",
        ),
        (
            lambda: Monitor("add_mod7", measures=[], readout=lambda out: out[:, None]),
            attended,
            r"must give logits \[inputs, classes\] for 2 inputs, got \[2, 1, 7\]",
        ),
    ],
)
def test_a_model_that_cannot_be_read_is_rejected_before_training(monitor: Any, model: Any, sentence: str) -> None:
    found = monitor()
    with pytest.raises(InputError, match=sentence), found.attach(model()):
        pass


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"measures": ["fds"]}, "there is no measure 'fds'; did you mean 'fsd'"),
        (
            {"measures": ["ablation"]},
            "'ablation' needs edited passes, which only grokscope's own models offer; any model has fsd",
        ),
        ({"every": 0}, "every must be a whole number of steps, at least 1, got 0"),
        ({"sites": [nn.ReLU()]}, "a site is a module's name, .* got ReLU"),
        ({"train": [[0, 1], [2]]}, "its rows differ in length"),
        ({"task": [[0, 1], [1]]}, "its rows differ in length"),
        ({"task": lambda a, b: (a + b) / 2, "symbols": 7}, r"must give whole numbers, got 0.5 for the pair \(0, 1\)"),
        ({"task": lambda a, b: a // b, "symbols": 7}, r"the operation fails for the pair \(0, 0\): ZeroDivisionError"),
        ({"encode": "onehot"}, "one of a_b_sep, a_op_b_equals, one_hot, got 'onehot'; did you mean 'one_hot'"),
        (
            {"train": [True, False]},
            r"train must be a mask over 49 pairs, a mask \[7, 7\], indices \[k\], or pairs \[k, 2\], got bool \[2\]",
        ),
        ({"train": np.ones(49, dtype=bool)}, "leave some for validation, got 49 of 49"),
        ({"train": [[0, 7]]}, "training pairs must lie in 0 … 6, got 7"),
        ({"train": [3, 49]}, "indices of training pairs must lie in 0 … 48, got 49"),
        ({"train": [0, 1, 1, 0] * 12 + [1]}, "indices of training pairs must differ, got 47 of 49 repeated"),
        ({"train": []}, r"or pairs \[k, 2\], got float64 \[0\]"),
        ({"keys": [4]}, "keys are modes from 1 to 3, got 4"),
        ({"basis": "isotypical"}, "has no basis 'isotypical'"),
        ({"out": "runs"}, "needs the training pairs"),
        ({"task": lambda a, b: a}, "needs the number of its symbols"),
        ({"task": lambda a, b: a + b, "symbols": 7}, r"below the number of symbols 7, got 7 for the pair \(1, 6\)"),
        ({"task": [[0, 1, 2], [1, 2, 0]]}, r"a square table of 2 to 1000 rows of whole numbers, got int64 of shape"),
        ({"task": 5}, "got 5"),
        ({"task": "ad_mod7"}, "did you mean 'add_mod7'"),
    ],
)
def test_bad_input_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Monitor(**({"task": "add_mod7", "sites": SITE} | given))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"encode": lambda a, b: 1 / 0}, "encode fails: ZeroDivisionError: division by zero"),
        ({"readout": lambda output: output.nothing}, "readout fails: AttributeError"),
        ({"sites": [lambda model, inputs: model.nothing]}, "the site '<lambda>' fails: AttributeError"),
        (
            {"sites": [lambda model, inputs: torch.zeros(3, len(inputs), 4)]},
            "where positions come first, give a functi",
        ),
        ({"encode": "a_b_sep"}, r"int64 \[49, 3\] with tokens up to 7: RuntimeError"),
    ],
)
def test_a_function_that_fails_in_an_evaluation_is_named(given: dict[str, Any], sentence: str) -> None:
    model = nn.Sequential(nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 7))
    with pytest.raises(InputError, match=sentence):
        Monitor(**({"task": "add_mod7", "sites": ["1"], "encode": "one_hot"} | given)).evaluate(model)


@pytest.mark.parametrize("state", [{}, {"log": "abc"}, {"log": [{}]}])
def test_a_state_that_is_no_monitors_is_rejected(state: Any) -> None:
    monitor = Monitor("add_mod7", SITE)
    with pytest.raises(InputError, match="the state is not a monitor's"):
        monitor.load_state_dict(state)
    assert monitor.log == []


def test_steps_go_forward_and_need_a_model() -> None:
    monitor = Monitor("add_mod7", SITE)
    with pytest.raises(InputError, match="the monitor watches no model"):
        monitor.step(0)
    monitor.measure(attended(), 100)
    with pytest.raises(InputError, match="step 50 comes after step 100 was logged"):
        monitor.measure(attended(), 50)
    with (
        monitor.attach(attended()),
        pytest.raises(InputError, match="attached already"),
        monitor.attach(attended()),
    ):
        pass


@pytest.mark.parametrize("name", foreign_measures())
def test_its_columns_are_columns_of_the_catalogue(name: str) -> None:
    every_evaluation = set(Monitor("add_mod7", SITE, ["answer_share"]).evaluate(attended()))
    own = set(Monitor("add_mod7", SITE, [name]).evaluate(attended())) - every_evaluation
    known = [
        re.sub(r"\\{([^}]*)\\}", lambda m: f"({m[1].replace(',', '|')})", re.escape(c)) for c in MEASURES[name].columns
    ]
    assert own
    assert all(any(re.fullmatch(pattern, column) for pattern in known) for column in own), own


def test_the_norm_of_complex_parameters_counts_both_parts() -> None:
    model = nn.Sequential(nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 7))
    real = Monitor("add_mod7", "1", encode="one_hot").evaluate(model)["norm"]
    model.register_parameter("phase", nn.Parameter(torch.tensor([3 + 4j, 0j])))
    found = Monitor("add_mod7", "1", encode="one_hot").evaluate(model)["norm"]
    assert found == pytest.approx(math.hypot(real, 5), rel=1e-12)
