"""Which parameters are trained: all, the last k layers, or the head."""

from __future__ import annotations

import dataclasses

import jax

from rmjax.errors import DataError
from rmjax.models.params import Block, Params


def parse(trainable: str, num_layers: int) -> int | None:
    """Number of trained layers, counted from the top; None for everything, embeddings included.

    Args:
        trainable: "all", "head", or a number of layers.
        num_layers: layers that there are.

    Returns:
        None, 0, or the number.

    Raises:
        DataError: it is none of the three, or more layers than there are.

    Example:
        >>> parse("all", 30), parse("head", 30), parse("10", 30)
        (None, 0, 10)
    """
    if trainable == "all":
        return None
    if trainable == "head":
        return 0
    count = int(trainable) if trainable.isdecimal() else 0
    if not 1 <= count <= num_layers:
        raise DataError(
            "what to train is not understood",
            {"trainable": trainable, "layers": num_layers},
            f'Say "all", "head", or a number of layers from 1 to {num_layers}.',
        )
    return count


def split(params: Params, layers: int | None) -> tuple[Params, Params]:
    """Parameters as (trained, frozen): two trees of one form, with None where the other one has the array.

    The final norm is trained with the layers under it. A frozen part takes no gradient, no optimiser state and no
    backward pass.

    Args:
        params: all parameters.
        layers: trained layers from the top, or None for everything.

    Returns:
        The two trees; `join` undoes it.

    Example:
        >>> from rmjax.models import ModelConfig, init
        >>> config = ModelConfig(258, 64, 128, num_layers=3, num_heads=4, num_kv_heads=2, head_dim=16)
        >>> trained, frozen = split(init(jax.random.key(0), config), 1)
        >>> trained.blocks.wq.shape[0], frozen.blocks.wq.shape[0], trained.embed is None
        (1, 2, True)
    """
    if layers is None:
        return params, Params(embed=None, blocks=None, norm=None, head=None)  # pyright: ignore[reportArgumentType] - the other tree has it
    cut = _depth(params.blocks) - layers
    below = jax.tree.map(lambda x: x[:cut], params.blocks) if cut else None
    above = jax.tree.map(lambda x: x[cut:], params.blocks) if layers else None
    trained = Params(embed=None, blocks=above, norm=params.norm if layers else None, head=params.head)  # pyright: ignore[reportArgumentType] - as above
    frozen = Params(embed=params.embed, blocks=below, norm=None if layers else params.norm, head=None)  # pyright: ignore[reportArgumentType] - as above
    return trained, frozen


def join(trained: Params, frozen: Params) -> tuple[Params, Block | None]:
    """Parameters and the layers below them, as `forward` takes them: nothing is copied.

    Args:
        trained: the first tree of `split`.
        frozen: the second.

    Returns:
        `params` and `below`; `below` is None where all layers are trained or none is.

    Example:
        >>> from rmjax.models import ModelConfig, init
        >>> config = ModelConfig(258, 64, 128, num_layers=3, num_heads=4, num_kv_heads=2, head_dim=16)
        >>> params, below = join(*split(init(jax.random.key(0), config), 1))
        >>> params.blocks.wq.shape[0], below.wq.shape[0]
        (1, 2)
    """
    either = {
        name: getattr(trained, name) if getattr(trained, name) is not None else getattr(frozen, name)
        for name in ("embed", "norm", "head")
    }
    if trained.blocks is None:
        return Params(blocks=frozen.blocks, **either), None
    return Params(blocks=trained.blocks, **either), frozen.blocks


def whole(trained: Params, frozen: Params) -> Params:
    """One tree of parameters again.

    Args:
        trained: the first tree of `split`.
        frozen: the second.

    Returns:
        The parameters that `split` took apart.

    Example:
        >>> from rmjax.models import ModelConfig, init
        >>> config = ModelConfig(258, 64, 128, num_layers=3, num_heads=4, num_kv_heads=2, head_dim=16)
        >>> whole(*split(init(jax.random.key(0), config), 1)).blocks.wq.shape[0]
        3
    """
    params, below = join(trained, frozen)
    if below is None:
        return params
    stacked = jax.tree.map(lambda low, high: jax.numpy.concatenate([low, high]), below, params.blocks)
    return dataclasses.replace(params, blocks=stacked)


def _depth(blocks: Block) -> int:
    return blocks.wq.shape[0]
