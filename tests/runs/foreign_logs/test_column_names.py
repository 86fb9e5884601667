import pytest

from grokscope.runs.foreign_logs.column_names import READ, column_meaning, run_and_column


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("_step", "step"),
        ("global_step", "step"),
        ("trainer/global_step", "step"),
        ("Step", "step"),
        ("epoch", "step"),
        ("train/acc", "train_accuracy"),
        ("trainAccuracy", "train_accuracy"),
        ("accuracy", "train_accuracy"),
        ("loss", "train_loss"),
        ("Loss/train", "train_loss"),
        ("val_acc", "validation_accuracy"),
        ("Accuracy/test", "validation_accuracy"),
        ("held-out accuracy", "validation_accuracy"),
        ("eval_loss", "validation_loss"),
        ("test/cross_entropy", "validation_loss"),
        ("weight_norm", "norm"),
        ("l2_norm", "norm"),
        ("wd", "weight_decay"),
        ("lr", "learning_rate"),
        ("grad_norm", None),
        ("val_acc_best", None),
        ("train_loss_std", None),
        ("runtime", None),
        ("_timestamp", None),
    ],
)
def test_other_names_of_our_columns(name, meaning):
    found = column_meaning(name)
    assert (found and found[0]) == meaning


def test_our_own_names_come_first():
    assert all(column_meaning(name) == (name, -1) for name in READ)
    assert column_meaning("val_acc")[1] < column_meaning("test_acc")[1] < column_meaning("val_acc_mod97")[1]
    assert column_meaning("train_loss")[1] < column_meaning("loss")[1]
    assert column_meaning("step")[1] < column_meaning("epoch")[1]


def test_the_columns_of_an_export_name_their_run():
    assert run_and_column("a - b - val_acc") == ("a - b", "val_acc")
    assert run_and_column(" - val_acc") == ("", " - val_acc")
