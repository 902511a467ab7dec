"""What a run is made from: a model, understood data that is split and tokenised, and their fingerprints."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from rmjax.comparisons import check_ties
from rmjax.data import synthetic
from rmjax.data.buckets import Layout, PackSpec
from rmjax.data.contract import TextContract, fingerprint, overlay
from rmjax.data.dataset import PreferenceData, subset
from rmjax.data.formats import read
from rmjax.data.packing import make_layout
from rmjax.data.split import Split, split
from rmjax.data.tokenise import TokenisedData, tokenise
from rmjax.errors import CheckpointError, DataError
from rmjax.models.config import ModelConfig
from rmjax.models.forward import check_remat
from rmjax.models.load import RewardModel, load
from rmjax.models.params import init
from rmjax.models.weights import LoadReport
from rmjax.sharding import MeshShape, make_mesh
from rmjax.tokenizer import ByteTokenizer
from rmjax.train.config import ReadConfig, TrainConfig, resolve
from rmjax.train.stored import exported, is_run
from rmjax.train.trainable import parse

# The demo's trunk: large enough to learn most of the synthetic world in about a minute on 2 cores.
TINY = ModelConfig(
    vocab_size=258,
    hidden_size=64,
    intermediate_size=192,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    max_positions=1024,
)


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A model with the data that it is trained and evaluated on."""

    model: RewardModel
    split: Split
    train: Layout
    held_out: Layout
    dropped: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)  # rows left out on reading
    files: tuple[str, ...] = ()  # fingerprints of all that the model was already trained on


def open_model(name: str, seed: int) -> RewardModel:
    """A model by name; "tiny" is made on the spot.

    Args:
        name: as in `TrainConfig.model`.
        seed: of the parameters of "tiny".

    Returns:
        The model.

    Raises:
        CheckpointError: there is no such model, or it is a run.

    Example:
        >>> open_model("tiny", seed=0).config.num_layers
        2
    """
    if name == "tiny":
        report = LoadReport(source=name, format="from scratch", head="new head", num_tensors=0, ignored=(), stored={})
        return RewardModel(TINY, init(jax.random.key(seed), TINY), ByteTokenizer(), report)
    if is_run(name):
        raise CheckpointError(
            "a run is no model to start from",
            {"directory": name},
            f"Write it as one with `rmjax export {name} DIRECTORY`, and give that directory.",
        )
    return load(name)


def read_file(path: str, config: ReadConfig) -> PreferenceData:
    """A file of preferences, or the synthetic world.

    Args:
        path: of the file, or "synthetic".
        config: how it is understood.

    Returns:
        Understood data.

    Raises:
        DataError: names the row that cannot be understood.

    Example:
        >>> read_file("synthetic", ReadConfig()).format
        'synthetic'
    """
    if path == "synthetic":
        return synthetic.make(synthetic.World()).data
    return read(
        path,
        fields=config.fields,
        texts=config.texts,
        on_bad_row=config.on_bad_row,
        on_empty_answer=config.on_empty_answer,
    )


def prepare(config: TrainConfig) -> Prepared:
    """Everything that a run needs, checked before any long work.

    Args:
        config: the run.

    Returns:
        The model, the split with its proof, and the layouts of both parts.

    Raises:
        DataError: the data cannot be understood or split, or the limit allows more tokens than the model has positions.
        CheckpointError: the model's files are damaged or incomplete.
    """
    config = resolve(config)
    make_mesh(config.mesh)
    check_remat(config.remat)
    data = read_file(config.data.path, config.data)
    check_ties(data.comparisons, config.data.ties, rows=data.rows)
    model = open_model(config.model, config.seed)
    parse(config.trainable, model.config.num_layers)
    before = exported(model)
    contract = within_positions(overlay(before["contract"] or TextContract(), config.text), model.config)
    parts = split(data, {"train": 1 - config.data.held_out, "held_out": config.data.held_out}, config.data.split_seed)
    layouts = {}
    for name, part in parts.parts.items():
        heard = part if name == "held_out" else subset(part, part.comparisons.counted(config.data.ties) > 0)
        if heard.num_comparisons == 0:
            raise DataError(
                "no comparison of training has a vote that counts",
                {"comparisons": part.num_comparisons, "ties": config.data.ties},
                'Look at the file with `rmjax inspect`; if all votes are ties, only ties="half" counts them.',
            )
        tokenised = tokenise(heard, model.tokenizer, contract, on_empty_answer=config.data.on_empty_answer)
        layout = lay_out(weigh(tokenised, config.data), config.packing, config.mesh)
        if silent := part.num_comparisons - heard.num_comparisons:
            note = f"{silent:,} comparisons of training have no vote that counts and are left out"
            layout = dataclasses.replace(layout, notes=(*layout.notes, note))
        layouts[name] = layout
    return Prepared(model, parts, layouts["train"], layouts["held_out"], dict(data.dropped), before["files"])


def within_positions(contract: TextContract, config: ModelConfig) -> TextContract:
    """A limit that the model's positions hold: beyond them its scores mean nothing, and nobody sees it.

    Args:
        contract: as it was asked for or stored.
        config: the decoder.

    Returns:
        The contract; where nothing was said, with a limit that is no longer than the model.

    Raises:
        DataError: a limit was said that allows more tokens than the model has positions.

    Example:
        >>> config = dataclasses.replace(TINY, max_positions=512)
        >>> within_positions(TextContract(), config).max_length, within_positions(TextContract(), TINY).max_length
        (512, 1024)
    """
    if contract.max_length == "auto":
        return dataclasses.replace(contract, max_length=min(contract.limit, config.max_positions))
    if contract.limit > config.max_positions:
        raise DataError(
            "the limit allows more tokens than the model has positions",
            {"limit": contract.limit, "positions": config.max_positions},
            f"Say max_length={config.max_positions}.",
        )
    return contract


def weigh(tokenised: TokenisedData, config: ReadConfig) -> TokenisedData:
    """The same data, weighted so that every `config.unit` counts as one."""
    comparisons = tokenised.data.comparisons.weigh(config.unit, config.ties)
    return dataclasses.replace(tokenised, data=dataclasses.replace(tokenised.data, comparisons=comparisons))


def lay_out(tokenised: TokenisedData, packing: PackSpec, mesh: MeshShape) -> Layout:
    """Trees and shapes, with rows that divide by the devices that share them.

    Args:
        tokenised: the data set.
        packing: how trees are packed.
        mesh: the devices.

    Returns:
        The layout.
    """
    multiple = int(np.lcm(packing.row_multiple, mesh.data * mesh.fsdp))
    return make_layout(tokenised, dataclasses.replace(packing, row_multiple=multiple))


def model_fingerprint(model: RewardModel, contract: TextContract) -> str:
    """A name for the function from text to score: scores under two of them are not on one scale.

    The dtype of matmuls is no part of it: it moves scores by rounding and leaves their scale. How much of a long
    prompt is cut depends on the longest answer to it in the file, so that scores of one text in two files are of one
    function only where as many of its tokens were cut.

    Args:
        model: parameters, configuration and tokenizer.
        contract: how text becomes tokens, resolved.

    Returns:
        The first 16 digits of a SHA-256 over all of them.

    Example:
        >>> model = open_model("tiny", seed=0)
        >>> model_fingerprint(model, TextContract()) == model_fingerprint(open_model("tiny", 1), TextContract())
        False
    """
    digest = hashlib.sha256()
    words: list[Any] = [dataclasses.asdict(model.config), fingerprint(contract, model.tokenizer)]
    digest.update(json.dumps(words, sort_keys=True).encode())
    for path, leaf in jax.tree_util.tree_flatten_with_path(model.params)[0]:
        digest.update(jax.tree_util.keystr(path).encode())
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()[:16]
