"""One mesh from one device to a pod: logical axis names, and the rules that give them to mesh axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from rmjax.errors import DataError

AXES = ("data", "fsdp", "tensor")
# Rows of a batch are split over both data axes; parameters over "fsdp" along the hidden size and over "tensor" along
# heads, neurons and vocabulary.
RULES: Mapping[str, str | tuple[str, ...]] = {
    "rows": ("data", "fsdp"),
    "embed": "fsdp",
    "heads": "tensor",
    "mlp": "tensor",
    "vocab": "tensor",
}


@dataclasses.dataclass(frozen=True)
class MeshShape:
    """How many devices each named axis takes. A product of 1 is one device."""

    data: int = 1
    fsdp: int = 1
    tensor: int = 1

    @property
    def size(self) -> int:
        """Devices in all."""
        return self.data * self.fsdp * self.tensor


def make_mesh(shape: MeshShape) -> jax.sharding.Mesh:
    """A mesh with the axes data, fsdp and tensor, in automatic mode: XLA places what the rules leave open.

    Args:
        shape: devices along each axis.

    Returns:
        The mesh.

    Raises:
        DataError: there are fewer devices than that.

    Example:
        >>> make_mesh(MeshShape()).axis_names
        ('data', 'fsdp', 'tensor')
    """
    devices = jax.devices()
    if shape.size > len(devices):
        raise DataError(
            "the mesh asks for more devices than there are",
            {"asked": shape.size, "devices": len(devices), "backend": devices[0].platform},
            "Make the mesh smaller, or give the process more devices.",
        )
    sizes = (shape.data, shape.fsdp, shape.tensor)
    return jax.make_mesh(sizes, AXES, axis_types=(AxisType.Auto,) * 3, devices=devices[: shape.size])


def shardings(specs: Any, mesh: jax.sharding.Mesh) -> tuple[Any, tuple[str, ...]]:
    """A `NamedSharding` for every parameter, and what had to be replicated.

    A logical axis is sharded only where it divides in every parameter that carries its name; otherwise it is
    replicated everywhere, so that tensors which meet in a contraction agree.

    Args:
        specs: a tree with `.shape` and `.axes` at every leaf, as `rmjax.models.params.abstract` gives.
        mesh: the mesh.

    Returns:
        The tree of shardings, and one sentence per logical axis that does not divide.

    Example:
        >>> from rmjax.models.config import ModelConfig
        >>> from rmjax.models.params import abstract
        >>> config = ModelConfig(
        ...     vocab_size=258,
        ...     hidden_size=64,
        ...     intermediate_size=128,
        ...     num_layers=2,
        ...     num_heads=9,
        ...     num_kv_heads=3,
        ...     head_dim=16,
        ... )
        >>> tree, replicated = shardings(abstract(config), make_mesh(MeshShape()))
        >>> replicated
        ()
    """
    is_spec = lambda leaf: hasattr(leaf, "axes")  # noqa: E731
    leaves = jax.tree.leaves(specs, is_leaf=is_spec)
    named = [(name, size) for leaf in leaves for size, name in zip(leaf.shape, leaf.axes, strict=True) if name]
    uneven = {name: min(s for n, s in named if n == name) for name, size in named if size % _devices(mesh, name)}

    def place(leaf) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*(RULES[a] if a and a not in uneven else None for a in leaf.axes)))

    said = tuple(
        f"{name} is replicated: {size} does not divide by {_devices(mesh, name)} devices on {RULES[name]}"
        for name, size in sorted(uneven.items())
    )
    return jax.tree.map(place, specs, is_leaf=is_spec), said


def row_sharding(mesh: jax.sharding.Mesh, rows: int) -> NamedSharding:
    """How the leading axis of a batch's row arrays is split; replicated where it does not divide."""
    return NamedSharding(mesh, PartitionSpec(RULES["rows"] if rows % _devices(mesh, "rows") == 0 else None))


def constrain_rows(x: jax.Array) -> jax.Array:
    """Keep rows split over the data axes inside a traced function; without a mesh, `x` itself."""
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or x.shape[0] % _devices(mesh, "rows"):
        return x
    return jax.lax.with_sharding_constraint(x, PartitionSpec(RULES["rows"]))


def constrain_looked_up(x: jax.Array) -> jax.Array:
    """Rows from a table that is split along the hidden size, [R, T, D], kept split over the data axes.

    A device looks up its part of the hidden size for all rows of its data group; then parts are exchanged for whole
    rows. Asked for whole rows at once on a mesh with all three axes, XLA replicates them on every device.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or x.shape[0] % _devices(mesh, "rows") or x.shape[-1] % _devices(mesh, "embed"):
        return constrain_rows(x)
    parts = PartitionSpec("data", *(None,) * (x.ndim - 2), RULES["embed"])
    return constrain_rows(jax.lax.with_sharding_constraint(x, parts))


def _devices(mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh, name: str) -> int:
    """Devices that a logical axis is split over."""
    axes = RULES[name]
    size = 1
    for axis in (axes,) if isinstance(axes, str) else axes:
        size *= mesh.shape[axis]
    return size
