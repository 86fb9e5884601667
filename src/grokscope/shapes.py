"""jaxtyping's names for shaped arrays, or inert stand-ins, so that the core imports without it.

Shapes are checked while testing (`pytest --jaxtyping-packages`) and cost nothing otherwise.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["Bool", "Complex", "Float", "Int"]

if TYPE_CHECKING:
    from jaxtyping import Bool, Complex, Float, Int
else:
    try:
        from jaxtyping import Bool, Complex, Float, Int
    except ImportError:

        class _Unchecked:
            """`Float[Tensor, "runs modes"]` is then just `Tensor`."""

            def __class_getitem__(cls, item: tuple[Any, str]) -> Any:
                return item[0]

        Bool = Complex = Float = Int = _Unchecked
