"""Which of somebody's parameters are matrices for Muon, and which are embeddings, head and vectors."""

import re
from collections.abc import Mapping

from torch import nn

__all__ = ["group_parameters"]

# As libraries and papers name them: TransformerLens, Hugging Face, nanoGPT, and `nn.Module`s written by hand.
EMBEDDING = re.compile(r"embed|wte|wpe|W_E\b|W_pos\b|position|token_emb|pos_emb", re.IGNORECASE)
HEAD = re.compile(r"(^|\.)(lm_head|head|unembed\w*|W_U|classifier|readout|output_layer)(\.|$)", re.IGNORECASE)


def group_parameters(model: nn.Module) -> dict[str, dict[str, nn.Parameter]]:
    """The trainable parameters by group: `matrix`, `embedding`, `head` and `vector`, each by name.

    Matrices have two axes, or three: a stack, such as one for each head. Embeddings are weights of `nn.Embedding`, and
    what is named like one, or, where there are none, the first matrix, which reads the inputs. The head is the
    module's own output embeddings, or what is named like a head, or else its last matrix. Everything else is a vector:
    what has one axis, and what has more than three, as the kernels of convolutions, of which Muon knows nothing.

    >>> model = nn.Sequential(nn.Embedding(7, 8), nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 7))
    >>> {group: [*own] for group, own in group_parameters(model).items()}
    {'matrix': ['1.weight'], 'embedding': ['0.weight'], 'head': ['3.weight'], 'vector': ['1.bias', '3.bias']}
    """
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    embedded = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    groups: dict[str, dict[str, nn.Parameter]] = {"matrix": {}, "embedding": {}, "head": {}, "vector": {}}
    head = _heads(model, {name: p for name, p in named.items() if p.ndim == 2 and id(p) not in embedded})
    is_embedding = {
        name: id(parameter) in embedded or (parameter.ndim >= 2 and EMBEDDING.search(name) is not None)
        for name, parameter in named.items()
    }
    if not any(is_embedding[name] for name, parameter in named.items() if id(parameter) not in head):
        first = next((name for name, one in named.items() if one.ndim == 2 and id(one) not in head), None)
        is_embedding |= {} if first is None else {first: True}
    for name, parameter in named.items():
        if id(parameter) in head:
            group = "head"
        elif is_embedding[name]:
            group = "embedding"
        else:
            group = "matrix" if parameter.ndim in (2, 3) else "vector"
        groups[group][name] = parameter
    return groups


def _heads(model: nn.Module, matrices: Mapping[str, nn.Parameter]) -> set[int]:
    """The matrices that give outputs, by identity; none where the head is an embedding too."""
    outputs = getattr(model, "get_output_embeddings", None)
    own = outputs() if callable(outputs) else None
    weight = getattr(own, "weight", None)
    if isinstance(weight, nn.Parameter):
        return {id(weight)} & {id(parameter) for parameter in matrices.values()}
    called = [parameter for name, parameter in matrices.items() if HEAD.search(name)]
    others = [parameter for name, parameter in matrices.items() if not EMBEDDING.search(name)]
    return {id(parameter) for parameter in called or others[-1:]}
