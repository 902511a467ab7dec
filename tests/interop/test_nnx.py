"""Laws of the NNX door: the same scores, parameters and training as ours, and our readings on a backbone of others."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from rmjax.errors import DataError
from rmjax.interop.flax import NNXReward, check_end_point, for_module, from_params, to_params, unpack
from rmjax.losses import negative_log_likelihood
from rmjax.models import ModelConfig, Params, ParamSpec, abstract, forward
from rmjax.models.layers import attention_mask
from rmjax.train.optimizer import OptimizerConfig, make_optimizer, update
from rmjax.train.step import make_gradient_fn
from rmjax.train.trainable import split
from tests.interop.others import VOCAB, WIDTH, NNXDecoder, trees
from tests.train.trees import make_params, relative

CONFIG = ModelConfig(
    VOCAB, 16, 24, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=8, family="qwen2", qkv_bias=True
)
OPTIMIZER = OptimizerConfig(learning_rate=1e-2, head_learning_rate=3e-2, weight_decay=0.3, clip_norm=0.5, warmup=0.5)
STEPS = 4


def same_bits(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_the_module_scores_as_forward_does_bit_for_bit():
    params, batch = make_params(CONFIG, jnp.float32), trees()
    expected = jax.jit(lambda params, batch: forward(params, batch, CONFIG, layer_scores=True))(params, batch)
    found = nnx.jit(lambda module, batch: module(batch, layer_scores=True))(from_params(params, CONFIG), batch)
    same_bits(found, expected)


@pytest.mark.parametrize("head_bias", [False, True])
def test_parameters_go_in_and_out_unchanged(head_bias):
    everything = dataclasses.replace(CONFIG, o_bias=True, mlp_bias=True, qk_norm=True)
    number = iter(range(100))
    is_spec = lambda leaf: isinstance(leaf, ParamSpec)  # noqa: E731
    specs = abstract(everything, head_bias=head_bias)
    params = jax.tree.map(lambda spec: jnp.full(spec.shape, float(next(number))), specs, is_leaf=is_spec)
    module = from_params(params, everything)
    same_bits(to_params(module), params)
    # A module that NNX took apart and put together is the same module.
    same_bits(to_params(nnx.merge(*nnx.split(module))), params)
    names = {".".join(map(str, path)) for path, _ in nnx.to_flat_state(nnx.state(module, nnx.Param))}
    assert {"embed", "blocks.wq", "blocks.b_down", "norm", "head.weight"} <= names
    assert ("head.bias" in names) == head_bias
    assert len(names) == len(jax.tree.leaves(params))


def our_steps(params, batch, layers):
    """Our step with our optimiser."""
    start, frozen = split(params, layers)
    gradient = make_gradient_fn(CONFIG, dtype=jnp.float64, layer_margins=False)
    optimizer = make_optimizer(OPTIMIZER, STEPS)
    move = jax.jit(lambda *state: update(optimizer, *state)[:2])
    trained, state = start, jax.jit(optimizer.init)(start)
    for _ in range(STEPS):
        slope, readout = gradient(trained, frozen, batch)
        trained, state = move(trained, state, slope, readout.count)
    return start, trained


def their_steps(params, batch, wrt):
    """The same under `nnx.Optimizer`, as a user of NNX writes it."""

    @nnx.jit
    def start(params):
        module = from_params(params, CONFIG, dtype=jnp.float64)
        return module, nnx.Optimizer(module, for_module(make_optimizer(OPTIMIZER, STEPS)), wrt=wrt)

    @nnx.jit
    def step(module, optimizer, batch):
        def loss(module):
            total, count = negative_log_likelihood(module(batch).scores, batch.comparisons)
            return total / count

        slope = nnx.grad(loss, argnums=nnx.DiffState(0, wrt))(module)
        with jax.numpy_dtype_promotion("standard"):
            optimizer.update(module, slope)

    module, optimizer = start(params)
    for _ in range(STEPS):
        step(module, optimizer, batch)
    return to_params(module)


@pytest.mark.parametrize(("layers", "wrt"), [(None, nnx.Param), (0, nnx.PathContains("head"))], ids=["all", "head"])
def test_under_an_nnx_optimizer_it_reaches_the_parameters_that_our_step_reaches(layers, wrt, x64):
    """Clipping over all parameters, decay of matrices alone and the head's own rate included."""
    params, batch = make_params(CONFIG, jnp.float64), trees()
    start, ours = our_steps(params, batch, layers)
    found = their_steps(params, batch, wrt)
    theirs, frozen = split(found, layers)
    start, ours, theirs = jax.tree.map(np.asarray, (start, ours, theirs))
    for (path, before), a, b in zip(
        jax.tree_util.tree_flatten_with_path(start)[0], jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True
    ):
        assert np.linalg.norm(a - before) > 0, path
        assert relative(b - before, a - before) < 1e-9, path
    same_bits(frozen, split(params, layers)[1])


@pytest.fixture(scope="module")
def backbone():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        return nnx.jit(lambda: NNXDecoder(nnx.Rngs(0)))()


def plain(net, batch):
    """As a user runs a causal backbone: rows from position 0."""
    width = batch.tokens.shape[1]
    causal = jnp.tri(width, dtype=bool)[None]
    return net.hidden(batch.tokens, jnp.arange(width)[None], causal)


def along_trees(net, batch):
    return net.hidden(batch.tokens, batch.depth, attention_mask(batch.segment, batch.parent, batch.depth, None))


def norm(net, x):
    return net.norm(x)


def with_head(backbone, states, **options):
    model = NNXReward(backbone, WIDTH, states=states, **options)
    model.head[...] = jnp.asarray(np.random.default_rng(0).normal(size=WIDTH), jnp.float32)
    return model


@nnx.jit
def read_and_slope(model, batch):
    """The reading, and the gradient of the loss in the backbone and the head."""

    def loss(model):
        reading = model(batch)
        return reading.loss_sum, reading

    slope, reading = nnx.grad(loss, has_aux=True)(model)
    return reading, slope


def test_a_backbone_of_others_reads_packed_trees_as_it_reads_single_texts(backbone):
    batch = trees()
    packed, slope = read_and_slope(with_head(backbone, along_trees, final_norm=norm, trees=True), batch)
    single, expected = read_and_slope(with_head(backbone, plain, final_norm=norm), unpack(batch, length=12))
    real = np.asarray(batch.comparisons.prompt) >= 0
    assert relative(packed.scores[real], single.scores[real]) < 1e-5
    assert packed.count == single.count == 9
    assert abs(packed.loss_sum - single.loss_sum) < 1e-5 * single.loss_sum
    assert relative(packed.layer_margins, single.layer_margins) < 1e-5
    assert packed.layer_margins.shape == (3, 4)
    assert check_end_point(packed) < 1e-6
    slope, expected = (dict(nnx.to_flat_state(nnx.as_pure(x))) for x in (slope, expected))
    # One vector added to every state cancels in every margin: what is left of its gradient is rounding.
    shift = ("backbone", "norm", "bias")
    assert max(np.abs(slope.pop(shift)).max(), np.abs(expected.pop(shift)).max()) < 1e-5
    for path, leaf in expected.items():
        assert np.linalg.norm(leaf) > 1e-3, path
        assert relative(slope[path], leaf) < 1e-5, path


def test_packed_rows_do_not_reach_a_backbone_that_knows_no_trees(backbone):
    with pytest.raises(DataError, match="unpack"):
        with_head(backbone, plain, final_norm=norm)(trees())


def test_backbone_and_head_learn_under_an_nnx_optimizer(backbone):
    net = nnx.clone(backbone)
    model = NNXReward(net, WIDTH, states=plain, final_norm=norm)
    with jax.numpy_dtype_promotion("standard"):
        optimizer = nnx.Optimizer(model, optax.sgd(0.3), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, batch):
        def loss(model):
            reading = model(batch)
            return reading.loss_sum / reading.count

        value, slope = nnx.value_and_grad(loss)(model)
        with jax.numpy_dtype_promotion("standard"):
            optimizer.update(model, slope)
        return value

    batch = unpack(trees(), length=12)
    losses = [float(step(model, optimizer, batch)) for _ in range(8)]
    assert losses[0] == pytest.approx(np.log(2), abs=1e-6)  # a head of zeros says nothing yet
    assert losses[-1] < losses[0] - 0.05
    moved = [
        np.abs(a - b).max() for a, b in zip(*(jax.tree.leaves(nnx.state(n)) for n in (net, backbone)), strict=True)
    ]
    assert min(moved) > 0


def test_it_takes_a_params_tree_apart_and_leaves_nothing_out():
    """A field added to `Params` or `Block` reaches the module without a change here."""
    params = make_params(CONFIG, jnp.float32)
    assert {f.name for f in dataclasses.fields(Params)} <= set(vars(from_params(params, CONFIG)))
