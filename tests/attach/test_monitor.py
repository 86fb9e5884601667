import math
import random
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parent))

from own_models import Attended, pairs_of, train

import grokscope
from grokscope import Monitor
from grokscope.attach import ATTACHED
from grokscope.attach.undisturbed import undisturbed
from grokscope.errors import InputError
from grokscope.jobs import run_all
from grokscope.measures import MEASURES, Question, measure
from grokscope.runs import Store
from grokscope.runs.measuring import measure_stack
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.packing import pack_records, unpack_records
from grokscope.runs.records import RunRecord
from grokscope.specs import Architecture, Cadence, RunSpec, Training
from grokscope.timeline import Outcome

TINY = RunSpec(
    task="add_mod11",
    train_fraction=0.5,
    architecture=Architecture(layers=1, width=16, heads=2, mlp_width=24),
    training=Training(steps=60, batch_size=16),
    checkpoints=Cadence(every=60),
    measurements=Cadence(every=60),
).with_seed(0)
SITE = "mlp.1"


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> grokscope.Run:
    path = tmp_path_factory.mktemp("runs")
    run_all([TINY], Store(path), compiled=False)
    return next(iter(grokscope.open(path)))


def attended(task: str = "add_mod7") -> Attended:
    torch.manual_seed(0)
    symbols = grokscope.named_task(task).symbols
    return Attended(symbols + 1, symbols)


# What it says is what grokscope says of its own models.


def test_a_grokscope_model_as_a_plain_module_gives_the_same_numbers(stored: grokscope.Run) -> None:
    module, subject = stored.module(60), stored.subject([60])
    sites = [name for name, _ in module.named_modules() if name.endswith("hook_post")]
    site: Any = sites[0] if sites else _hidden_of(module)
    names = ["fsd", "fsd_k", "fsd_gen", "rank", "concentration", "fourier_kan"]
    monitor = Monitor("add_mod11", sites=site, measures=names, train=subject.is_train[0])
    seen = monitor.look(module)
    expected = measure(Question(subject), [*names, "memorization", "norms"])[0]
    shared = set(seen) & set(expected) - {"undefined"}
    assert {"fsd", "fsd_2", "fsd_gen_3", "rank", "ipr", "kan_r2", "train_loss", "validation_accuracy", "norm"} <= shared
    for column in shared:
        assert seen[column] == pytest.approx(expected[column], rel=1e-5, nan_ok=True), column


def test_restricted_and_excluded_losses_are_those_of_the_registry(stored: grokscope.Run) -> None:
    module, subject = stored.module(60), stored.subject([60])
    monitor = Monitor("add_mod11", _hidden_of(module), ["trig", "excluded"], train=subject.is_train[0])
    seen = monitor.look(module)
    expected = measure_stack(subject, ["trig", "excluded"])[0]
    assert seen["trig"] == pytest.approx(expected["trig"], rel=1e-5)
    assert seen["excluded"] == pytest.approx(expected["excluded"], rel=1e-5)
    assert seen["trig_modes"] == expected["trig_modes"]


def test_given_keys_are_used_at_every_look(stored: grokscope.Run) -> None:
    module = stored.module(60)
    every = Monitor("add_mod11", _hidden_of(module), ["trig"], keys=range(1, 6)).look(module)
    one = Monitor("add_mod11", _hidden_of(module), ["trig"], keys=[1]).look(module)
    assert (every["trig_modes"], one["trig_modes"]) == (5, 1)
    assert every["trig"] != one["trig"]


def _hidden_of(module: nn.Module) -> Any:
    """The neurons of a grokscope module, by its own hook."""
    return next(name for name, _ in module.named_modules() if name.endswith(("hook_post", "mlp.act", "activation")))


def test_every_offered_measure_gives_numbers() -> None:
    row = Monitor("add_mod7", SITE, list(ATTACHED)).look(attended())
    assert not row["undefined"]
    assert all(math.isfinite(value) for value in row.values() if not isinstance(value, str))


# It leaves no trace.


def trained(monitor: Monitor | None, autocast: bool = False) -> tuple[list[float], dict[str, Tensor]]:
    model = attended()
    model.attention.eval()  # one part that its owner keeps in evaluation
    tokens, answers, _ = pairs_of("add_mod7")
    np.random.seed(1)
    torch.manual_seed(1)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        if monitor is None:
            losses = train(model, tokens, answers, 30)
        else:
            with monitor.attach(model):
                losses = train(model, tokens, answers, 30, monitor.step)
    assert not model.attention.training
    assert model.mlp[2].training
    losses += [float(np.random.random()), float(torch.rand(1))]
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in model.modules())
    return losses, model.state_dict()


@pytest.mark.parametrize("autocast", [False, True])
def test_training_with_and_without_it_is_bit_identical(autocast: bool) -> None:
    monitor = Monitor("add_mod7", ["mlp.1", "attention", _draws_by_chance], ["fsd", "trig"], every=5, chunk=20)
    alone, watched = trained(None, autocast), trained(monitor, autocast)
    assert len(monitor.log) == 7
    assert alone[0] == watched[0]
    for name, value in alone[1].items():
        assert torch.equal(value, watched[1][name]), name


def _draws_by_chance(model: nn.Module, tokens: Tensor) -> Tensor:
    np.random.random()
    return torch.rand(len(tokens), 8)


def test_every_generator_is_put_back() -> None:
    model = attended()
    states = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())
    with undisturbed(model):
        random.random()
        np.random.random()
        torch.rand(1)
    assert states == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())


def test_autocast_does_not_reach_what_is_read() -> None:
    model = attended()
    with torch.autocast("cpu", torch.bfloat16):
        inside = Monitor("add_mod7", SITE).look(model)
    assert inside == Monitor("add_mod7", SITE).look(model)


def test_an_error_in_a_look_leaves_modes_and_hooks_as_they_were() -> None:
    model = attended()

    def broken(model: nn.Module, tokens: Tensor) -> Tensor:
        raise RuntimeError("mine")

    before = torch.get_rng_state()
    with pytest.raises(InputError, match="the site 'broken' fails: RuntimeError: mine"):
        Monitor("add_mod7", [SITE, broken]).look(model)
    assert all(module.training and not module._forward_hooks for module in model.modules())
    assert torch.equal(before, torch.get_rng_state())


def test_a_compiled_model_is_read_inside_and_not_compiled_again() -> None:
    model = attended()
    compiled = torch.compile(model, backend="eager")
    assert Monitor("add_mod7", SITE).look(compiled) == Monitor("add_mod7", SITE).look(model)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # of the compiler itself
@pytest.mark.parametrize("compile_part", ["the model in place", "a part of it"])
def test_looks_compile_nothing_and_disturb_nothing_compiled(compile_part: str) -> None:
    from torch._dynamo.testing import CompileCounter

    def run(is_watched: bool) -> tuple[list[float], int, list[float]]:
        torch._dynamo.reset()
        model, counter = attended(), CompileCounter()
        if compile_part == "a part of it":
            model.mlp = torch.compile(model.mlp, backend=counter)
        else:
            model.compile(backend=counter)
        tokens, answers, _ = pairs_of("add_mod7")
        monitor = Monitor("add_mod7", ["mlp._orig_mod.1" if compile_part == "a part of it" else SITE], every=4)
        torch.manual_seed(1)
        with monitor.attach(model):
            losses = train(model, tokens, answers, 12, monitor.step if is_watched else lambda step: None)
        return losses, counter.frame_count, [row["fsd"] for row in monitor.log]

    alone, watched = run(False), run(True)
    assert alone[:2] == watched[:2]
    assert len(watched[2]) == 4


class Drawn(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
    """Pairs, shifted by chance of every kind that a worker has."""

    def __init__(self) -> None:
        self.tokens, self.answers, _ = pairs_of("add_mod7")

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        other = (place + random.randrange(2) + int(torch.randint(2, ()))) % len(self)
        return self.tokens[other], self.answers[other]


def test_a_loader_with_workers_gives_the_same_batches() -> None:
    def run(monitor: Monitor | None) -> list[float]:
        model = attended()
        random.seed(1)
        torch.manual_seed(1)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        losses = []
        for epoch in range(2):
            if monitor is not None:
                monitor.measure(model, epoch)
            loader = torch.utils.data.DataLoader(Drawn(), batch_size=8, shuffle=True, num_workers=1)
            for tokens, answers in loader:
                loss = nn.functional.cross_entropy(model(tokens), answers)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return [*losses, random.random()]

    def by_chance(model: nn.Module, tokens: Tensor) -> Tensor:
        random.random()
        return torch.rand(len(tokens), 8)

    assert run(None) == run(Monitor("add_mod7", [SITE, by_chance], ["fsd"]))


def test_chunks_change_nothing() -> None:
    model = attended()
    whole, parts = (Monitor("add_mod7", SITE, chunk=size).look(model) for size in (49, 5))
    assert whole.pop("undefined") == parts.pop("undefined") == ""
    assert whole == pytest.approx(parts, rel=1e-5)


# Sites, positions, encoders, readouts.


def test_an_input_a_callable_and_a_second_site_are_read() -> None:
    model = attended()

    def hidden(model: nn.Module, tokens: Tensor) -> Tensor:
        stream = model.embed(tokens)
        stream = stream + model.attention(stream, stream, stream, need_weights=False)[0]
        return model.mlp[1](model.mlp[0](stream))

    row = Monitor("add_mod7", [SITE, hidden, "mlp.2.input"], ["fsd", "rank"]).look(model)
    for column in ("fsd", "rank", "answer_share"):
        assert row[column] == row[f"{column}@hidden"] == row[f"{column}@mlp.2.input"]


def test_another_position_is_another_reading() -> None:
    model = attended()
    last, first, every = (Monitor("add_mod7", SITE, position=p).look(model) for p in (-1, 0, None))
    assert last["answer_share"] != first["answer_share"] != every["answer_share"]
    with pytest.raises(InputError, match=r"the site 'mlp.1' has 3 positions, got position 5"):
        Monitor("add_mod7", SITE, position=5).look(model)


def test_one_hot_pairs_and_four_tokens_are_encoded() -> None:
    torch.manual_seed(0)
    mlp = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 7))
    assert "fsd" in Monitor("add_mod7", "1", encode="one_hot").look(mlp)
    four = Attended(9, 9)
    assert Monitor("add_mod7", SITE, encode="a_op_b_equals").look(four)["loss"] > 0


def test_a_dict_a_tuple_and_outputs_of_several_kinds_are_understood() -> None:
    model = attended()

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, first: Tensor, second: Tensor) -> dict[str, Tensor]:
            tokens = torch.stack([first, second, torch.full_like(first, 7)], dim=1)
            return {"logits": self.inner(tokens)[:, None].expand(-1, 3, -1), "loss": torch.zeros(())}

    plain = Monitor("add_mod7", SITE).look(model)
    by_name = Monitor("add_mod7", f"inner.{SITE}", encode=lambda a, b: {"second": b, "first": a}).look(Wrapped())
    in_order = Monitor("add_mod7", f"inner.{SITE}", encode=lambda a, b: (a, b)).look(Wrapped())
    read = Monitor(
        "add_mod7", f"inner.{SITE}", encode=lambda a, b: (a, b), readout=lambda out: out["logits"][:, 0]
    ).look(Wrapped())
    assert plain == by_name == in_order == read


# Operations.


def test_a_function_and_a_table_that_are_addition_are_read_as_addition() -> None:
    model = attended()
    named = Monitor("add_mod7", SITE).look(model)
    table = [[(a + b) % 7 for b in range(7)] for a in range(7)]
    for operation in (table, np.array(table), torch.tensor(table)):
        assert Monitor(operation, SITE).look(model) == named
    assert Monitor(lambda a, b: (a + b) % 7, SITE, symbols=7).look(model) == named


def test_a_table_of_a_group_is_read_in_its_irreps() -> None:
    group = grokscope.named_group("S3")
    torch.manual_seed(0)
    model = Attended(7, 6)
    own, named = (Monitor(task, SITE, ["fsd_gen", "fsd", "rank"]).look(model) for task in (group.table, "S3"))
    assert own == named


def test_an_operation_without_a_group_is_told_and_has_the_rest() -> None:
    with pytest.warns(UserWarning, match=r"is not a group's .*: fsd, rank need a basis and are left out; accuracies"):
        monitor = Monitor(lambda a, b: max(a, b), SITE, symbols=7)
    row = monitor.look(attended())
    assert "fsd" not in row
    assert 0 < row["answer_share"] < 1
    assert row["accuracy"] >= 0


def test_pairs_without_an_answer_are_left_out() -> None:
    with pytest.warns(UserWarning, match="need a basis"):
        monitor = Monitor(lambda a, b: None if b == 0 else a // b, SITE, symbols=7)
    assert len(monitor.task.inputs) == 42
    assert Monitor(lambda a, b: None if b == 0 else a * pow(b, -1, 7) % 7, SITE, symbols=7).task.name == "div_mod7"


# The log.


def test_the_log_is_read_by_list_show_and_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from grokscope.cli import run

    tokens, answers, is_train = pairs_of("add_mod7")
    model = attended()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=2.0)
    monitor = Monitor("add_mod7", SITE, every=10, train=is_train, out=tmp_path, model_name="<b>mine</b>", seed=3)
    with monitor.attach(model, optimizer):
        train(model, tokens, answers, 20, monitor.step, optimizer)
    assert run(["list", str(tmp_path)]) == 0
    assert "add_mod7_s3" in capsys.readouterr().out
    assert run(["show", "add_mod7_s3", "--out", str(tmp_path)]) == 0
    assert "not grokked" in capsys.readouterr().out
    folder = next(iter(Store(tmp_path)))
    assert (folder.spec.model, folder.spec.training.weight_decay) == ("<b>mine</b>", 2.0)
    record = monitor.record
    assert (record.spec, record.outcome) == (folder.spec, folder.outcome)
    with pytest.raises(InputError, match="a record is read from a kept log"):
        _ = Monitor("add_mod7", SITE).record
    assert record.timeline.outcome in (Outcome.UNSTABLE, Outcome.NEVER)
    assert record.evaluations["fsd"] == monitor.columns()["fsd"]
    (tmp_path / "records.gz").write_bytes(pack_records([record]))
    assert unpack_records(tmp_path / "records.gz")[0].spec == folder.spec
    with pytest.raises(InputError, match="was only monitored: '<b>mine</b>' is trained elsewhere"):
        run_all([folder.spec], Store(tmp_path))


def test_a_second_log_in_the_same_place_is_refused_and_a_continued_one_goes_on(tmp_path: Path) -> None:
    _, _, is_train = pairs_of("add_mod7")
    model, places = attended(), {"train": is_train, "out": tmp_path}
    first = Monitor("add_mod7", SITE, **places)
    first.measure(model, 0)
    state = first.state_dict()
    first.measure(model, 100)
    with pytest.raises(InputError, match="holds a log already; give Monitor another seed or model_name"):
        Monitor("add_mod7", SITE, **places).measure(model, 0)
    again = Monitor("add_mod7", SITE, **places)
    again.load_state_dict(state)
    again.measure(model, 50)
    assert [row["step"] for row in next(iter(Store(tmp_path))).log()] == [0, 50]


def test_somebodys_own_group_is_kept_beside_its_runs(tmp_path: Path) -> None:
    group = grokscope.named_group("S3")
    train_mask = np.random.default_rng(0).random((6, 6)) < 0.5
    monitor = Monitor(group.table, SITE, train=train_mask, out=tmp_path)
    with monitor.attach(Attended(7, 6)):
        monitor.step(0)
    record = next(iter(Store(tmp_path))).record()
    assert grokscope.named_task(record.spec.task).group.order == 6
    assert record.timeline.last == 0


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
    looks = zip([0, 100, 200], [0.1, 0.6, 0.9], strict=True)
    monitor.load_state_dict(
        {"log": [{"step": at, "fsd": fsd, "train_accuracy": 1.0, "validation_accuracy": 0.1} for at, fsd in looks]}
    )
    kept = RunRecord(RunSpec(task), RunOutcome("grokked"), monitor.columns(), {})
    assert monitor.timeline().sync.step == kept.timeline.sync.step == synchronised


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
            r"Attended refuses what encode gives, float32 \[2, 14\]: RuntimeError: ",
        ),
        (
            lambda: Monitor("add_mod97", SITE),
            attended,
            r"Attended refuses what encode gives, int64 \[2, 3\] with tokens up to 97: IndexError: index out of range",
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
            lambda: Monitor("add_mod7", readout=lambda out: out[:, None]),
            attended,
            r"must give logits \[inputs, classes\] for 2 inputs, got \[2, 1, 7\]",
        ),
    ],
)
def test_a_model_that_cannot_be_read_is_refused_before_training(monitor: Any, model: Any, sentence: str) -> None:
    found = monitor()
    with pytest.raises(InputError, match=sentence), found.attach(model()):
        pass


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"measures": ["fds"]}, "there is no measure 'fds'; did you mean 'fsd'"),
        ({"measures": ["ablation"]}, "'ablation' needs grokscope's own transformer and cannot be taken of others"),
        ({"every": 0}, "every must be a whole number of steps, at least 1, got 0"),
        ({"sites": [nn.ReLU()]}, "a site is a module's name, .* got ReLU"),
        ({"train": [[0, 1], [2]]}, "its rows differ in length"),
        ({"task": [[0, 1], [1]]}, "its rows differ in length"),
        ({"task": lambda a, b: (a + b) / 2, "symbols": 7}, r"must give whole numbers, got 0.5 for the pair \(0, 1\)"),
        ({"task": lambda a, b: a // b, "symbols": 7}, r"the operation fails for the pair \(0, 0\): ZeroDivisionError"),
        ({"encode": "onehot"}, "one of a_b_sep, a_op_b_equals, one_hot, got 'onehot'; did you mean 'one_hot'"),
        ({"train": [True, False]}, r"train must be a mask over 49 pairs, a mask \[7, 7\], or pairs"),
        ({"train": np.ones(49, dtype=bool)}, "leave some for validation, got 49 of 49"),
        ({"train": [[0, 7]]}, "training pairs must lie in 0 … 6, got"),
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
def test_a_function_that_fails_in_a_look_is_named(given: dict[str, Any], sentence: str) -> None:
    model = nn.Sequential(nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 7))
    with pytest.raises(InputError, match=sentence):
        Monitor(**({"task": "add_mod7", "sites": ["1"], "encode": "one_hot"} | given)).look(model)


@pytest.mark.parametrize("state", [{}, {"log": "abc"}, {"log": [{}]}])
def test_a_state_that_is_no_monitors_is_refused(state: Any) -> None:
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


def test_what_is_offered_has_its_name_in_the_registry() -> None:
    assert set(ATTACHED) - {"answer_share"} <= set(MEASURES)


@pytest.mark.parametrize("name", sorted(set(ATTACHED) - {"answer_share"}))
def test_its_columns_are_columns_of_the_registry(name: str) -> None:
    every_look = set(Monitor("add_mod7", SITE, ["answer_share"]).look(attended()))
    own = set(Monitor("add_mod7", SITE, [name]).look(attended())) - every_look
    known = [
        re.sub(r"\\{([^}]*)\\}", lambda m: f"({m[1].replace(',', '|')})", re.escape(c)) for c in MEASURES[name].columns
    ]
    assert own
    assert all(any(re.fullmatch(pattern, column) for pattern in known) for column in own), own
