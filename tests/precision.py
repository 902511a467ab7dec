"""What tests of numbers share: ulp, relative errors, and an oracle of 40 digits."""

import zlib

import mpmath
import numpy as np

EPS = {dtype: float(np.finfo(dtype).eps) for dtype in (np.float32, np.float64)}
TINY = float(np.finfo(np.float32).tiny)  # XLA's CPU flushes what is smaller


def exact(fun, *arguments):
    """A function of 40 digits, where float64 is no oracle for itself."""
    with mpmath.workdps(40):
        return np.array([float(fun(*(mpmath.mpf(float(x)) for x in row))) for row in zip(*arguments)])


def few(x, number):
    """So many of them, others for every array: for an oracle of 40 digits a thousand take too long."""
    return np.random.default_rng(zlib.crc32(x.tobytes())).choice(x, number, replace=False)


def relative(got, want):
    """The largest relative error."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return np.max(np.abs(got - want) / np.maximum(np.abs(want), np.finfo(np.float64).tiny))
