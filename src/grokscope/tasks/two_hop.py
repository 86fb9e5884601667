"""Two hops over a synthetic knowledge graph: (head, relation, relation) → tail.

Wang et al., "Grokked Transformers are Implicit Reasoners" (2024). Every entity has d outgoing facts (h, r) → t, with
different relations and random tails. A share of these atomic facts is out of distribution, the others are in
distribution; all of them are trained on. An inferred fact (h, r₁, r₂) → t follows two atomic ones, (h, r₁) → b and
(b, r₂) → t. Where both are in distribution, it is trained on or it validates; where both are out of distribution, it
is held out; mixed ones are no rows. The knob of the paper is φ, inferred facts trained on over atomic facts in
distribution.
"""

import numpy as np

from grokscope.errors import InputError, require, shown
from grokscope.shapes import Bool, Int
from grokscope.tasks.kinds import Kind, Number, Numbers
from grokscope.tasks.row_groups import DRAWN, RowGroup
from grokscope.tasks.task import MAX_ROWS, Task

__all__ = ["TWO_HOP"]

RELATIONS_PER_FACT = 10  # relations, if not given, over an entity's facts: 200 over 20 in the paper
MOST_POSSIBLE = 2**26  # facts that an entity and a relation could make: each gets a random word


def _two_hop_task(name: str, numbers: Numbers) -> Task:
    """Sequences [h, r₁, r₂, separator]; an atomic fact has padding in place of r₂."""
    entities, degree = int(numbers["e"]), int(numbers["d"])
    relations = RELATIONS_PER_FACT * degree if np.isnan(numbers["r"]) else int(numbers["r"])
    require(degree <= relations, f"d facts of an entity need as many relations in {shown(name)}", relations)
    rows = entities * degree * (degree + 1)
    require(rows <= MAX_ROWS, f"a task may have at most {MAX_ROWS:,} rows, and {shown(name)} would have more", rows)
    possible = entities * relations
    require(possible <= MOST_POSSIBLE, f"e times r of {shown(name)} must be at most {MOST_POSSIBLE:,}", possible)
    seed = int(numbers["seed"])
    relation, tail = _graph(entities, relations, degree, seed)
    is_out = _out_of_distribution(entities * degree, numbers["ood"], seed).reshape(entities, degree)
    atomic, atomic_tails = _atomic_facts(relation, tail, entities + relations)
    inferred, inferred_tails, hops_out = _inferred_facts(relation, tail, is_out)
    kept = hops_out != 1  # with one hop of each kind it is neither in nor out of distribution
    inferred, inferred_tails, hops_out = inferred[kept], inferred_tails[kept], hops_out[kept]
    tokens = np.concatenate([atomic, inferred])
    tokens[:, 1:3] += np.where(tokens[:, 1:3] < relations, entities, 0)  # relations stand after the entities
    place = len(atomic) + np.arange(len(inferred))
    within, outside = place[hops_out == 0], place[hops_out == 2]
    share = None if np.isnan(numbers["phi"]) else _share(name, numbers["phi"], int((~is_out).sum()), len(within))
    if not len(within):
        raise InputError(f"{shown(name)} has no inferred fact in distribution: lower ood")
    groups = [
        RowGroup("inferred", DRAWN, within, share),
        RowGroup("atomic", "train", np.arange(len(atomic))),
    ]
    if len(outside):
        groups.append(RowGroup("out_of_distribution", "held_out", outside))
    return Task(
        name=name,
        title=f"two hops over {entities} entities with {degree} facts each",
        answers=np.concatenate([atomic_tails, inferred_tails]),
        classes=entities,
        tokens=np.concatenate([tokens, np.full((len(tokens), 1), entities + relations + 1)], axis=1),
        vocabulary=entities + relations + 2,
        row_groups=tuple(groups),
    )


def _graph(
    entities: int, relations: int, degree: int, seed: int
) -> tuple[Int[np.ndarray, "entities degree"], Int[np.ndarray, "entities degree"]]:
    """Relation and tail of each fact of each entity; an entity is never its own tail."""
    from grokscope.tasks.sampling import random_numbers  # loads torch; other names can be checked without it

    words = random_numbers(seed, 0, entities * relations, 2**62).reshape(entities, relations)
    relation = np.sort(np.argsort(words, axis=1, kind="stable")[:, :degree], axis=1)
    steps = random_numbers(seed, 1, entities * degree, entities - 1).reshape(entities, degree)
    return relation, (np.arange(entities)[:, None] + 1 + steps) % entities


def _out_of_distribution(facts: int, share: int | float, seed: int) -> Bool[np.ndarray, " facts"]:
    from grokscope.tasks.sampling import random_order

    return random_order(seed, 2, facts) < round(share * facts)


def _atomic_facts(relation: np.ndarray, tail: np.ndarray, padding: int) -> tuple[np.ndarray, np.ndarray]:
    """[h, r, padding] and t of every fact."""
    heads = np.repeat(np.arange(len(relation)), relation.shape[1])
    return np.stack([heads, relation.ravel(), np.full(len(heads), padding)], axis=1), tail.ravel()


def _inferred_facts(
    relation: np.ndarray, tail: np.ndarray, is_out: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[h, r₁, r₂], t, and how many of the two facts are out of distribution, of every chain of two facts."""
    entities, degree = relation.shape
    heads = np.repeat(np.arange(entities), degree**2)
    first = np.repeat(relation.ravel(), degree)
    bridges = tail.ravel()
    chains = np.stack([heads, first, relation[bridges].ravel()], axis=1)
    hops_out = np.repeat(is_out.ravel(), degree).astype(np.int64) + is_out[bridges].ravel()
    return chains, tail[bridges].ravel(), hops_out


def _share(name: str, phi: int | float, atomic: int, inferred: int) -> float:
    """The share of the inferred facts in distribution that is φ times as many as the atomic ones in distribution."""
    share = phi * atomic / max(inferred, 1)
    most = inferred / max(atomic, 1)
    require(0 < share < 1, f"phi of {shown(name)} must lie between 0 and {most:.3g}, all inferred facts", phi)
    return share


TWO_HOP = Kind(
    "twohop",
    (
        Number("e", 4, 100_000),
        Number("d", 1, 1_000),
        Number("r", 1, 100_000, default=np.nan),
        Number("ood", 0, 0.9, default=0.05, is_whole=False),
        Number("phi", 0.01, 1_000, default=np.nan, is_whole=False),
        Number("seed", 0, 10**9, default=0),
    ),
    _two_hop_task,
    "twohop_e100_d10_phi5",
    "(head, relation, relation) → tail over a random graph of facts; phi inferred facts for each atomic one",
)
