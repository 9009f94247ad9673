"""Data that the library makes itself."""

import numpy as np

LEVELS = np.array([-1.0, 1.2, -0.25, 1.2, 0.25])  # of the multi-step function, on the fifths of [0, 1]


def multi_step(
    seed: int = 0, points: int = 140, noise: float = 0.005
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The paper's multi-step function (`fig:synthetic`): `x, y` for training and `x, y` for testing, 1-D each.

    Plateaus -1, 1.2, -0.25, 1.2, 0.25 on the fifths of [0, 1], `points` uniform inputs on each, noise of the given
    standard deviation; a random half is for training.

    !!! example

        >>> from latentforce.datasets import multi_step
        >>> [part.shape for part in multi_step(seed=1)]
        [(350,), (350,), (350,), (350,)]
    """
    generator = np.random.default_rng(seed)
    x = np.concatenate([generator.uniform(i / 5, (i + 1) / 5, points) for i in range(5)])
    y = np.repeat(LEVELS, points) + noise * generator.standard_normal(x.size)
    order = generator.permutation(x.size)
    train, test = order[: x.size // 2], order[x.size // 2 :]
    return x[train], y[train], x[test], y[test]
