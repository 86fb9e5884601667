"""Write, or check, the character-table fixtures that GAP computes from characters.g."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
Record = dict[str, Any]

# Kept apart from the GAP program, so that a group lost or misbuilt there is noticed here.
ORDERS = {
    "Z5": 5, "Z7": 7, "Z8": 8, "Z12": 12, "Z15": 15,
    "D4": 8, "D5": 10, "D6": 12, "D7": 14, "D12": 24, "D15": 30,
    "Q8": 8, "Q12": 12, "S3": 6, "S4": 24, "S5": 120, "S6": 720, "A4": 12, "A5": 60, "A6": 360,
    "Aff5": 20, "Aff7": 42, "SL2_3": 24, "SL2_5": 120, "PSL2_7": 168,
    "Z2xZ2": 4, "Z2xQ8": 16, "Z3xS4": 72, "D4xZ3": 24, "S3xS3": 36, "Z3xA4": 36,
}  # fmt: skip


def run_gap() -> dict[str, Record]:
    """Every group's full record, multiplication table included, by name."""
    # Without packages (-A) or a user's own settings (-r), the answer depends on GAP's core alone.
    command = ["gap", "-q", "-A", "-r", "--quitonbreak", str(FOLDER / "characters.g")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode or done.stderr:
        raise RuntimeError(f"GAP failed (exit {done.returncode}): {done.stderr or done.stdout[-2000:]}")
    return {record["name"]: record for record in map(json.loads, done.stdout.splitlines())}


def compact(record: Record) -> Record:
    """The record with only the generators' rows of the multiplication table."""
    kept = {key: value for key, value in record.items() if key != "table"}
    return kept | {"rows": {str(g): record["table"][g] for g in record["generators"]}}


def rebuild_table(small: Record) -> np.ndarray:
    """The whole multiplication table, composed from the generators' rows."""
    identity = small["classes"][small["orders"].index(1)][0]
    steps = [np.array(row) for row in small["rows"].values()]
    found = {identity: np.arange(small["order"])}
    queue = [identity]
    for h in queue:  # grows while it is read
        for step in steps:
            gh = int(step[h])
            if gh not in found:
                found[gh] = step[found[h]]
                queue.append(gh)
    if len(found) != small["order"]:
        raise ValueError(f"the generators reach {len(found)} of {small['order']} elements")
    return np.stack([found[x] for x in range(small["order"])])


def number(value: int | Record) -> complex:
    """A character value as a floating-point number."""
    if isinstance(value, int):
        return complex(value)
    roots = np.exp(2j * np.pi * np.arange(value["n"]) / value["n"])
    return complex(roots @ value["coefficients"])


def element_orders(table: np.ndarray, identity: int) -> np.ndarray:
    """The order of every element."""
    elements = np.arange(len(table))
    orders, power, k = np.zeros(len(table), int), elements, 1
    while not orders.all():
        orders[(orders == 0) & (power == identity)] = k
        power, k = table[elements, power], k + 1
    return orders


def class_products(
    table: np.ndarray, inverse: np.ndarray, class_of: np.ndarray, classes: list[list[int]]
) -> np.ndarray:
    """a[i, j, k]: in how many ways an element of class k is a product of one from class i and one from class j."""
    counts = np.zeros((len(classes),) * 3)
    for k, members in enumerate(classes):
        np.add.at(counts[:, :, k], (class_of, class_of[table[inverse, members[0]]]), 1)
    return counts


def validate(record: Record) -> None:
    """Raise ValueError unless the classes and characters are those of the group in the multiplication table."""
    table, classes, order = np.array(record["table"]), record["classes"], record["order"]
    sizes = np.array([len(members) for members in classes])
    characters = np.array([[number(value) for value in row] for row in record["characters"]])
    elements = np.arange(order)

    def require(holds: object, what: str) -> None:
        if not holds:
            raise ValueError(f"{record['name']}: {what}")

    require(order == ORDERS[record["name"]] and table.shape == (order, order), "order of the group")
    require(np.array_equal(rebuild_table(compact(record)), table), "generator rows do not regenerate the table")
    require(
        sorted(x for members in classes for x in members) == elements.tolist(), "classes do not partition the group"
    )
    require(record["orders"][0] == 1 and sizes[0] == 1, "first class is not the identity's")
    identity = classes[0][0]
    class_of = np.empty(order, int)
    for k, members in enumerate(classes):
        class_of[members] = k
    inverse = np.argmax(table == identity, axis=1)

    for members in classes:
        conjugates = np.unique(table[table[elements, members[0]], inverse])
        require(conjugates.tolist() == members, "a class is not a conjugacy class")
    require(np.array_equal(element_orders(table, identity), np.array(record["orders"])[class_of]), "element orders")

    require(characters.shape == (len(classes), len(classes)), "as many characters as classes")
    degrees = characters[:, 0].real
    require(all(isinstance(row[0], int) and row[0] > 0 for row in record["characters"]), "degrees")
    require(sum(row[0] ** 2 for row in record["characters"]) == order, "sum of squared degrees")
    gram = (characters * sizes) @ characters.conj().T / order
    require(np.allclose(gram, np.eye(len(classes)), atol=1e-9), "row orthogonality")
    squares = characters[:, class_of[table[elements, elements]]].sum(axis=1) / order
    require(np.allclose(squares, record["indicators"], atol=1e-9), "Frobenius–Schur indicators")

    # Orthogonality survives a swap of equal-sized classes. Only the irreducible characters, with their columns in the
    # right places, are multiplicative on class sums.
    omega = characters * sizes / degrees[:, None]
    products = np.einsum("ijk,ck->cij", class_products(table, inverse, class_of, classes), omega)
    require(np.allclose(omega[:, :, None] * omega[:, None, :], products, atol=1e-6), "class algebra")


def text(small: Record) -> str:
    """What a fixture file holds."""
    return json.dumps(small, separators=(",", ":"), sort_keys=True) + "\n"


def difference(old: Any, new: Any, where: str) -> str | None:
    """The first place at which two JSON values differ, in words."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        pairs = [(old[key], new[key], f"{where}.{key}") for key in sorted(old)]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(old, new, strict=True))]
    else:
        return None if old == new else f"{where}: the file has {str(old)[:80]}, GAP gives {str(new)[:80]}"
    return next((found for pair in pairs if (found := difference(*pair))), None)


def first_difference(fresh: dict[str, Record]) -> str | None:
    """Where the committed files first differ from a fresh run, in words."""
    committed = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    if unmatched := sorted(committed.keys() ^ fresh.keys()):
        return f"{unmatched[0]}.json: {'not made by GAP' if unmatched[0] in committed else 'missing'}"
    for name, small in fresh.items():
        old = json.loads(committed[name])
        # Another version of GAP must agree about the mathematics, not about its own number.
        expected = small | {"gap_version": old.get("gap_version")}
        if found := difference(old, expected, name):
            return found
        if committed[name] != text(expected):
            return f"{name}.json: same values, written differently"
    return None


def main() -> int:
    """Write the fixtures, or with --check compare them with a fresh run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the files with a fresh GAP run; write nothing")
    check = parser.parse_args().check
    records = run_gap()
    if lost := sorted(ORDERS.keys() ^ records.keys()):
        raise ValueError(f"characters.g and ORDERS disagree about {', '.join(lost)}")
    for record in records.values():
        validate(record)
    fresh = {name: compact(record) for name, record in records.items()}
    if check:
        found = first_difference(fresh)
        print(found or f"{len(fresh)} fixtures agree with GAP")
        return 1 if found else 0
    for name, small in fresh.items():
        (FOLDER / f"{name}.json").write_text(text(small), encoding="utf-8")
    print(f"wrote {len(fresh)} fixtures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
