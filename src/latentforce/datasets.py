"""Data that the library makes itself."""

import numpy as np

LEVELS = np.array([-1.0, 1.2, -0.25, 1.2, 0.25])  # of the multi-step function, on the fifths of [0, 1]
RESONANCES = np.array(  # of the voice: frequency and bandwidth in Hz, size
    [[150.0, 60.0, 0.6], [520.0, 80.0, 1.0], [1400.0, 120.0, 0.5], [2500.0, 160.0, 0.25]]
)


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


def voice(seed: int = 0, samples: int = 10_000, rate: int = 16_000) -> np.ndarray:
    """Something like a voice, (samples,) between -1 and 1: sound where no recording may be shipped.

    Glottal pulses of drifting pitch ring in four resonances; loudness comes and goes, and there is a little noise.

    !!! example

        >>> from latentforce.datasets import voice
        >>> sound = voice(seed=1)
        >>> sound.shape, bool(abs(sound).max() < 1.0)
        ((10000,), True)
    """
    generator = np.random.default_rng(seed)
    time = np.arange(samples) / rate
    pitch = 120.0 * np.exp(0.1 * _drift(generator, time, fastest=4.0))
    turns = np.cumsum(pitch) / rate
    loudness = 1 / (1 + np.exp(-4 * _drift(generator, time, fastest=5.0)))
    pulses = loudness * np.diff(np.floor(turns), prepend=0.0)
    frequency, width, size = RESONANCES.T[..., None]
    since = time[None, : rate // 20]  # the pulse; after that there is nothing left of it
    ringing = np.sum(size * np.exp(-np.pi * width * since) * np.sin(2 * np.pi * frequency * since), axis=0)
    sound = np.convolve(pulses, ringing)[:samples] + 0.003 * generator.standard_normal(samples)
    return 0.5 * sound / np.abs(sound).max()


def _drift(generator: np.random.Generator, time: np.ndarray, fastest: float) -> np.ndarray:
    """A smooth random function of mean square one: a few slow waves."""
    frequency, phase = generator.uniform(0.3 * fastest, fastest, 4), generator.uniform(0, 2 * np.pi, 4)
    waves = np.sin(2 * np.pi * frequency[:, None] * time[None] + phase[:, None])
    return np.sum(waves, axis=0) / 2**0.5
