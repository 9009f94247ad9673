"""Kernels and features (paper, `fig:basis-functions`, `fig:basis-function32`, `fig:basis-function52`), and what the
features leave unexplained.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..dynamics._filters import FirstOrder, Identity
from ..dynamics._forces import Matern
from ..dynamics._process import Process
from ..features._driven import DrivenFourier
from ..features._harmonic import HarmonicFourier
from ._feature_figures import draw_shapes, draw_unexplained, force_name
from ._sweep import Cell, Measured, Page, Setup
from ._tables import table

ORDERS = (0.5, 1.5, 2.5)
SIZES = (20, 80)
FAMILIES = {"harmonic": HarmonicFourier, "driven": DrivenFourier}
INTERVAL = (-1.0, 4.0)  # the paper's setting for UCI data, which lie in [0, 3]
END = 0.0  # of such data
PAPER_DELAYS = {4: (1 / 4, "1/4 π"), 14: (5 / 12, "5/12 π")}  # in half turns, by harmonic
SHAPES = {
    "lengthscale": 0.2,
    "interval": list(INTERVAL),
    "gamma": 5.0,  # of the features' filter: gives the paper's phase delays
    "gammas": [2.0, 5.0, 20.0, 100.0],  # of the kernels' filters
    "harmonics": [[4, "cosine"], [14, "sine"]],  # z = 8 pi/(b-a) and 28 pi/(b-a)
}


class Unexplained(NamedTuple):
    """Share of the prior variance at an end of the data that the features leave unexplained."""

    nu: float
    family: str
    num_frequencies: int
    num_features: int
    share: float


def unexplained_variance(
    orders: Sequence[float] = ORDERS, sizes: Sequence[int] = SIZES, t: float = END
) -> list[Unexplained]:
    """Harmonic against driven features, length-scale 1, no filter, at time `t`: one row for each order, family and
    size.

    !!! example

        >>> from latentforce.experiments.features import unexplained_variance
        >>> rows = unexplained_variance(orders=(1.5,), sizes=(20,))
        >>> [(row.family, row.num_features, f"{row.share:.1%}") for row in rows]
        [('harmonic', 41, '16.4%'), ('driven', 43, '0.0%')]
    """
    with jax.enable_x64(True):
        return [row for row, _ in _unexplained(orders, sizes, jnp.array([t]))]


def _unexplained(orders: Sequence[float], sizes: Sequence[int], t: Array) -> list[tuple[Unexplained, Array]]:
    """The row of the first time, and the shares of the others."""
    found = []
    for nu in orders:
        process = Process(Matern(nu=nu, lengthscale=1.0), Identity())
        for name, family in FAMILIES.items():
            for size in sizes:
                features = family(size, interval=INTERVAL)
                share = features.residual_variance(process, t) / process.variance()
                row = Unexplained(nu, name, size, features.num_features(process), float(share[0]))
                found.append((row, share[1:]))
    return found


def cells(setup: Setup) -> list[Cell]:
    """One for each Matérn order, and one for what is left unexplained; there is nothing to shorten for `quick`."""
    rest = {"what": "unexplained", "orders": list(ORDERS), "sizes": list(SIZES), "t": END, "interval": list(INTERVAL)}
    return [*({"what": "shapes", "nu": nu, **SHAPES} for nu in ORDERS), rest]


def measure(cell: Cell, data: Path | None) -> dict[str, Any]:
    """Curves of one order, or the unexplained variance; `data` is not used."""
    with jax.enable_x64(True):
        if cell["what"] == "unexplained":
            a, b = cell["interval"]
            times = jnp.linspace(a, b, 201)
            found = _unexplained(cell["orders"], cell["sizes"], jnp.concatenate([jnp.array([cell["t"]]), times]))
            return {"t": times, "rows": [row._asdict() | {"curve": curve} for row, curve in found]}
        force = Matern(nu=cell["nu"], lengthscale=cell["lengthscale"])
        return {"kernels": _kernels(force, cell), "waves": _waves(force, cell)}


def _kernels(force: Matern, cell: Cell) -> dict[str, Any]:
    """Covariances with the value at lag 0: of the force, of responses whose gain is one, and of the usual LFM."""
    lag, origin = jnp.linspace(-1.0, 1.0, 201), jnp.zeros(1)
    filters = {"force": Identity(), "usual": FirstOrder(alpha=cell["gamma"], beta=1.0)}
    filters |= {f"{gamma:g}": FirstOrder(alpha=1.0, beta=1.0 / gamma) for gamma in cell["gammas"]}
    kernels = {name: Process(force, filter).covariance(lag, origin)[:, 0] for name, filter in filters.items()}
    return {"lag": lag} | kernels


def _waves(force: Matern, cell: Cell) -> dict[str, Any]:
    """Features of force and response at each frequency, also outside of the interval.

    Harmonic z_m is driven z_2m. Driven modes are scaled: the force's has amplitude one where it is steady.
    """
    a, b = cell["interval"]
    process = Process(force, FirstOrder(alpha=1.0, beta=1.0 / cell["gamma"]))
    t = jnp.linspace(a - 1.0, b + 1.0, 561)
    size = max(m for m, _ in cell["harmonics"])
    harmonic, driven = HarmonicFourier(size, interval=(a, b)), DrivenFourier(size, interval=(a, b))
    pairs = harmonic.cross_covariance(Process(force, Identity()), t), harmonic.cross_covariance(process, t)
    modes = driven.force_whitened(process, t), driven.whitened(process, t)
    steady = (t > (a + b) / 2) & (t < b)
    waves: dict[str, Any] = {"t": t}
    for m, kind in cell["harmonics"]:
        z = harmonic.frequencies()[m]
        gain = process.filter.response(z)
        vff, vfrf = (values[:, m if kind == "cosine" else size + m] for values in pairs)
        amplitude = jnp.max(jnp.abs(modes[0][steady, 2 * m]))
        pushed, driven_mode = (values[:, 2 * m] / amplitude for values in modes)
        numbers = {"frequency": z, "gain": jnp.abs(gain), "phase": -jnp.angle(gain)}
        waves[str(m)] = numbers | {"harmonic": [vff, vfrf], "driven": [pushed, driven_mode]}
    return waves


def present(results: list[Measured]) -> Page:
    """A figure for each order, one of what is left unexplained, and the numbers."""
    text = ["## Kernels and features (`fig:basis-functions`, `fig:basis-function32`, `fig:basis-function52`)"]
    shapes = [measured for measured in results if measured.cell["what"] == "shapes"]
    figures = {f"matern-{round(2 * one.cell['nu'])}-2": draw_shapes(one) for one in shapes}
    if shapes:
        text += [_delays(shapes[0]), _limits(shapes)]
    for measured in results:
        if measured.cell["what"] == "unexplained":
            text.append(_left(measured))
            figures["unexplained"] = draw_unexplained(measured)
    return Page("\n\n".join(text), figures)


def _delays(measured: Measured) -> str:
    cell, waves = measured.cell, measured.result["waves"]
    rows, near = [], True
    for m, kind in cell["harmonics"]:
        wave, (delay, paper) = waves[str(m)], PAPER_DELAYS[m]
        turn = wave["phase"] / np.pi
        near &= abs(turn - delay) < 0.01
        rows.append(
            [f"{2 * m} π/(b−a), {kind}", paper, f"{turn:.3f} π", wave["phase"] / wave["frequency"], wave["gain"]]
        )
    a, b = cell["interval"]
    return (
        f"Length-scale {cell['lengthscale']:g} as in the paper, which gives neither interval nor γ for the features; "
        f"chosen here: [{a:g}, {b:g}], the paper's elsewhere, and γ = {cell['gamma']:g} (α = 1, β = 1/γ). Phase delays "
        "are those of the filter, -arg H(jz), whatever the order of the force.\n\n"
        + table(["feature", "phase delay, paper", "ours", "delay in time", "gain"], rows)
        + f"\n\nThe paper's phase delays to within 0.01 π: {_verdict(near)}."
    )


def _limits(shapes: list[Measured]) -> str:
    gammas = [f"{gamma:g}" for gamma in shapes[0].cell["gammas"]]
    rows, reverts = [], True
    for measured in shapes:
        kernels = {name: np.array(values) for name, values in measured.result["kernels"].items()}
        distances = [float(np.max(np.abs(kernels[name] - kernels["force"]))) for name in (*gammas, "usual")]
        reverts &= distances[:-1] == sorted(distances[:-1], reverse=True)
        rows.append([force_name(measured.cell["nu"]), *distances])
    return (
        "Largest distance of the response's kernel from the force's, with α = 1, β = 1/γ and with the usual α = γ = "
        f"{shapes[0].cell['gamma']:g}, β = 1:\n\n"
        + table(["force", *(f"γ = {gamma}" for gamma in gammas), "usual LFM"], rows)
        + f"\n\nWith growing γ the kernel reverts to the force's: {_verdict(reverts)}."
    )


def _left(measured: Measured) -> str:
    cell = measured.cell
    share = {(row["nu"], row["family"], row["num_frequencies"]): row["share"] for row in measured.result["rows"]}
    (small, *_, large), (a, b) = cell["sizes"], cell["interval"]
    columns = [(family, size) for family in FAMILIES for size in cell["sizes"]]
    rows = [
        [force_name(nu), *(f"{100 * share[nu, family, size]:.3g} %" for family, size in columns)]
        for nu in cell["orders"]
    ]
    better = all(
        share[nu, "driven", size] < share[nu, "harmonic", size] for nu in cell["orders"] for size in cell["sizes"]
    )
    kept = [f"{share[nu, 'harmonic', large] / share[nu, 'harmonic', small]:.0%}" for nu in cell["orders"]]
    return (
        f"Share of the prior variance left unexplained at t = {cell['t']:g}, an end of the data, by M frequencies on "
        f"[{a:g}, {b:g}], length-scale 1, no filter (the paper has no such table):\n\n"
        + table(["force", *(f"{family}, M = {size}" for family, size in columns)], rows)
        + f"\n\nDriven features leave less than harmonic ones in every row and at every M: {_verdict(better)}. Of what "
        f"{small} harmonic frequencies leave, {large} still leave {', '.join(kept)}."
    )


def _verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"
