"""The container format GGUF: metadata and tensors of a file, tensors dequantised when they are asked for.

The `gguf` package undoes the quantisation. Its reader spends seconds on the vocabulary, a string at a time through
NumPy, so the header is read here.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rmjax.errors import CheckpointError
from rmjax.models.config import is_size

if TYPE_CHECKING:
    import gguf

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_VERSIONS = (2, 3)
_BLOCKS = 1 << 12  # dequantised at once: their temporaries stay in the cache


class GGUFFile(Mapping[str, np.ndarray]):
    """Metadata, and tensors by their names in the file as float32 arrays with the slowest axis first.

    Example:
        >>> import io, struct
        >>> GGUFFile("empty", memory=b"GGUF" + struct.pack("<IQQ", 3, 0, 0)).metadata
        {}

    Source:
        the GGUF specification in the repository of ggml, docs/gguf.md.
    """

    def __init__(self, path: str | Path, *, memory: bytes | None = None):
        self.path = Path(path)
        self._memory = _map(self.path) if memory is None else memory
        try:
            self.metadata, self._directory, self._start = _header(self._memory)
        except (struct.error, KeyError, UnicodeDecodeError, OverflowError, IndexError) as error:
            raise _damaged(self.path, error) from error

    def __getitem__(self, name: str) -> np.ndarray:
        import gguf

        shape, _, offset = self._directory[name]
        kind = self._kind(name)
        block, size = gguf.GGML_QUANT_SIZES[kind]
        start = self._start + offset
        stop = start + math.prod(shape) // block * size
        if shape[-1] % block or stop > len(self._memory):
            raise _damaged(self.path, f"tensor {name} ends at byte {stop} of {len(self._memory)}")
        blocks = np.frombuffer(self._memory, np.uint8, stop - start, start).reshape(-1, size)
        values = np.empty((len(blocks), block), np.float32)
        try:
            # The package loops over groups of 16 rows in Python: a long row of blocks at a time is twice as fast.
            for first in range(0, len(blocks), _BLOCKS):
                chunk = blocks[first : first + _BLOCKS]
                values[first : first + _BLOCKS] = gguf.quants.dequantize(chunk.reshape(1, -1), kind).reshape(-1, block)
        except NotImplementedError as error:
            raise CheckpointError(
                "a tensor is quantised in a way that cannot be undone here",
                {"tensor": name, "kind": kind.name},
                "Use a file with another quantisation, such as Q8_0 or F16.",
            ) from error
        return values.reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._directory)

    def __len__(self) -> int:
        return len(self._directory)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of a tensor, without reading it."""
        return self._directory[name][0]

    @property
    def kinds(self) -> dict[str, int]:
        """How many tensors there are in which number format, `{"Q4_1": 210}`."""
        return dict(Counter(self._kind(name).name for name in self))

    def _kind(self, name: str) -> gguf.GGMLQuantizationType:
        import gguf

        kind = self._directory[name][1]
        try:
            return gguf.GGMLQuantizationType(kind)
        except ValueError as error:
            raise _damaged(self.path, f"tensor {name} is of kind {kind}, which nobody has defined") from error


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _header(memory: Any) -> tuple[dict[str, Any], dict[str, tuple[tuple[int, ...], int, int]], int]:
    """Metadata, name -> (shape, kind, offset), and where the data begin."""
    at = 0

    def take(code: str) -> Any:
        nonlocal at
        values: tuple[Any, ...] = struct.unpack_from("<" + code, memory, at)
        at += struct.calcsize("<" + code)
        return values[0] if len(values) == 1 else values

    def string() -> str:
        nonlocal at
        length = take("Q")
        value = bytes(memory[at : at + length]).decode("utf-8")
        at += length
        return value

    def value(kind: int) -> Any:
        if kind == _STRING:
            return string()
        if kind != _ARRAY:
            return take(_SCALARS[kind])
        item, count = take("IQ")
        if item == _STRING:
            return [string() for _ in range(count)]
        if item == _ARRAY:
            return [value(item) for _ in range(count)]
        return list(take(f"{count}{_SCALARS[item]}")) if count > 1 else [value(item) for _ in range(count)]

    magic, version, tensors, pairs = struct.unpack_from("<4sIQQ", memory)
    if magic != b"GGUF" or version not in _VERSIONS:
        raise KeyError(f"not GGUF of version {' or '.join(map(str, _VERSIONS))}: {magic!r}, version {version}")
    at = 24
    metadata = {string(): value(take("I")) for _ in range(pairs)}
    directory = {}
    for _ in range(tensors):
        name = string()
        dims = [take("Q") for _ in range(take("I"))]
        kind, offset = take("IQ")
        if not dims:
            raise KeyError(f"tensor {name} has no dimensions")
        directory[name] = (tuple(reversed(dims)), kind, offset)
    alignment = metadata.get("general.alignment", 32)
    if not is_size(alignment):
        raise KeyError(f"general.alignment={alignment}")
    return metadata, directory, -(-at // alignment) * alignment


def _damaged(path: Path, reason: object) -> CheckpointError:
    return CheckpointError(
        "a GGUF file cannot be read",
        {"file": path, "reason": reason},
        "Copy or download the file again: it is missing, cut short, or in another format.",
    )
