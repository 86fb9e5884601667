"""Values of a wrong type, given as a user gives them: in a program of its own, where no type is checked beforehand."""

import json
import subprocess
import sys

# What is written, and what is said of it.
WRONG = {
    "Monitor('add_mod7', every=1.5)": "every must be a whole number of steps, at least 1, got 1.5",
    "Monitor('add_mod7', every=None)": "every must be a whole number of steps, at least 1, got None",
    "Monitor('add_mod7', chunk='all')": "chunk must be a whole number of pairs, at least 1, got 'all'",
    "Monitor('add_mod7', position='last')": "position must be a whole number, or None for all of them, got 'last'",
    "Monitor('add_mod7', by='product')": "by must be one of answer, sum, input, got 'product'",
    "Monitor('add_mod7', readout='logits')": "readout must be a function of the model's output, got 'logits'",
    "Monitor('add_mod7', encode=None)": (
        "encode must be a function of (a, b) or one of a_b_sep, a_op_b_equals, one_hot, got None"
    ),
    "Monitor('add_mod7', sites=3)": "sites must be a list of names, got 3",
    "Monitor('add_mod7', sites=[3])": (
        "a site is a module's name, as model.named_modules() has it, or a function of (model, inputs), got int"
    ),
    "Monitor('add_mod7', measures=3)": "measures must be a list of names, got 3",
    "Monitor('add_mod7', keys=[1.5])": "keys are modes from 1 to 3, got 1.5",
    "Monitor(max, symbols='7')": "the number of symbols must lie between 2 and 1000, got '7'",
    "monitor.measure(model, 'first')": "a step must be a whole number, at least 0, got 'first'",
    "monitor.measure(model, '3')": "a step must be a whole number, at least 0, got '3'",
    "monitor.measure(model, 1.5)": "a step must be a whole number, at least 0, got 1.5",
    "monitor.measure(model, float('nan'))": "a step must be a whole number, at least 0, got nan",
    "monitor.measure(model, float('inf'))": "a step must be a whole number, at least 0, got inf",
    "monitor.measure(model, -100)": "a step must be a whole number, at least 0, got -100",
    "monitor.is_due(torch.arange(2))": "a step must be a whole number, at least 0, got tensor([0, 1])",
    "monitor.load_state_dict(None)": "the state is not a monitor's: it has no entry 'log'",
    "WeightDecayController(optimizer, None)": "monitor must be a Monitor, got NoneType",
    "WeightDecayController(optimizer, monitor, bounds=3)": "bounds must be 0 ≤ lowest ≤ highest, got 3",
    "WeightDecayController(optimizer, monitor, hold='long')": (
        "hold must be a whole number of steps, at least 1, got 'long'"
    ),
    "Schedule((500, 3.0))": "a schedule is a list of (step, weight decay), each at least 0, got 500",
}
PROGRAM = """
import json, sys
import torch
from grokscope import Monitor, WeightDecayController
from grokscope.attach import Schedule
from grokscope.errors import InputError

model = torch.nn.Linear(14, 7)
optimizer = torch.optim.AdamW(model.parameters())
monitor = Monitor("add_mod7", [lambda model, inputs: model(inputs)], encode="one_hot", train=torch.eye(7) > 0)
said = {}
for written in json.load(sys.stdin):
    try:
        eval(written)
    except InputError as error:
        said[written] = str(error)
    except Exception as error:
        said[written] = repr(error)
print(json.dumps(said))
"""


def test_each_is_one_sentence_that_names_the_value() -> None:
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, input=json.dumps([*WRONG]), capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == WRONG
