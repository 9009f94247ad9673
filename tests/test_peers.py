"""The tasks and scores of `benchmarks/peers.py`, which needs none of the peers for them."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import make_friedman1

from latentforce.datasets import multi_step

SOURCE = Path(__file__).parents[1] / "benchmarks" / "peers.py"
PEERS = runpy.run_path(str(SOURCE))


@pytest.mark.parametrize("task", ["step", "friedman"])
def test_tasks_are_standardised_by_the_training_rows(task):
    (x, y), (x_test, y_test), scale = PEERS["load"](task, 1)
    if task == "step":
        inputs, targets, _, held_out = multi_step(1)
        inputs = inputs[:, None]
    else:
        inputs, targets = make_friedman1(1000, noise=1.0, random_state=1)
        inputs, targets, held_out = inputs[:500], targets[:500], targets[500:]
    np.testing.assert_allclose(x * inputs.std(axis=0) + inputs.mean(axis=0), inputs)
    np.testing.assert_allclose(y * scale + targets.mean(), targets)
    np.testing.assert_allclose(y_test * scale + targets.mean(), held_out)
    assert x_test.shape == (len(y_test), x.shape[1])


def test_scores_are_those_of_the_mixture():
    y, mean, std = np.array([0.3, -1.0]), np.array([[0.0, 1.0], [2.0, -1.0]]), np.array([[1.0, 0.5], [0.1, 2.0]])
    rmse, nmll = PEERS["mixture"](lambda x: (mean, std))(np.zeros((2, 1)), y)
    assert rmse == pytest.approx(np.sqrt(np.mean((np.array([1.0, 0.0]) - y) ** 2)))
    assert nmll == pytest.approx(-np.mean(np.log(norm.pdf(y, mean, std).mean(axis=0))))
