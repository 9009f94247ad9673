"""Kernels, features and samples in three pictures (paper, `fig:basis-functions`), and what features leave unexplained.

python -m latentforce.experiments.basis_functions --out FOLDER
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..dynamics._filters import FirstOrder, Identity, SecondOrder
from ..dynamics._forces import Matern
from ..dynamics._process import Process
from ..features._driven import DrivenFourier
from ..features._harmonic import HarmonicFourier

INTERVAL = (-1.0, 4.0)  # the paper's setting for UCI data, which lie in [0, 3]


class Unexplained(NamedTuple):
    """Share of the prior variance at an end of the data that the features leave unexplained."""

    nu: float
    family: str
    num_frequencies: int
    num_features: int
    share: float


def unexplained_variance(
    orders: tuple[float, ...] = (0.5, 1.5, 2.5), sizes: tuple[int, ...] = (20, 80), t: float = 0.0
) -> list[Unexplained]:
    """Harmonic against driven features, length-scale 1, no filter, at time `t`: one row for each order, family and
    size.

    !!! example

        >>> from latentforce.experiments.basis_functions import unexplained_variance
        >>> rows = unexplained_variance(orders=(1.5,), sizes=(20,))
        >>> [(row.family, row.num_features, f"{row.share:.1%}") for row in rows]
        [('harmonic', 41, '16.4%'), ('driven', 43, '0.0%')]
    """
    rows = []
    with jax.enable_x64(True):
        for nu in orders:
            process = Process(Matern(nu=nu, lengthscale=1.0), Identity())
            for name, family in (("harmonic", HarmonicFourier), ("driven", DrivenFourier)):
                for size in sizes:
                    features = family(size, interval=INTERVAL)
                    share = features.residual_variance(process, [t])[0] / process.variance()
                    rows.append(Unexplained(nu, name, size, features.num_features(process), float(share)))
    return rows


def run(folder: Path) -> None:
    """Print the table and write the pictures to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    print(
        "Share of the prior variance left unexplained at an end of the data\n"
        "(t = 0, interval [-1, 4], length-scale 1, no filter):\n"
    )
    print(f"  {'force':<12}{'features':<12}{'M':>4}{'F':>6}{'unexplained':>14}")
    for row in unexplained_variance():
        force = f"Matérn-{round(2 * row.nu)}/2"
        print(f"  {force:<12}{row.family:<12}{row.num_frequencies:>4}{row.num_features:>6}{100 * row.share:>12.6f} %")
    print()
    pictures = {
        "kernels.png": ("Kernels: a force, and what filters make of it", draw_kernels),
        "features.png": ("Features of one process: the paper's, and driven ones", draw_features),
        "samples.png": ("A force and its response", draw_samples),
    }
    for name, (title, draw) in pictures.items():
        figure = Figure(figsize=(11, 4), layout="constrained")
        draw(list(figure.subplots(1, 2)))
        figure.suptitle(title)
        figure.savefig(folder / name, dpi=130)
        print(f"wrote {folder / name}")


def draw_kernels(axes: list[Axes]) -> None:
    """Left: a Matérn-1/2 force through first-order filters (paper, `fig:basis-functions`); right: through an
    oscillator.
    """
    lag = jnp.linspace(-1.0, 1.0, 401)
    origin = jnp.zeros(1)
    force = Matern(nu=0.5, lengthscale=0.2)
    for rate in (2.0, 4.0, 20.0, 100.0):
        process = Process(force, FirstOrder(alpha=1.0, beta=1.0 / rate))
        axes[0].plot(lag, process.covariance(lag, origin)[:, 0], label=rf"$\gamma$ = {rate:g}")
    axes[0].plot(lag, Process(force, Identity()).covariance(lag, origin)[:, 0], "k--", label="the force")
    axes[0].set(title="Matérn-1/2 force, first order", xlabel="lag", ylabel="covariance")
    axes[0].legend()
    lag = jnp.linspace(-3.0, 3.0, 401)
    for ratio in (0.1, 0.3, 1.0, 2.0):
        process = Process(Matern(nu=1.5, lengthscale=0.2), SecondOrder(mass=1.0, damping=12.0 * ratio, stiffness=36.0))
        axes[1].plot(lag, process.covariance(lag, origin)[:, 0] / process.variance(), label=f"damping ratio {ratio:g}")
    axes[1].set(title="Matérn-3/2 force, second order", xlabel="lag", ylabel="correlation")
    axes[1].legend()


def draw_features(axes: list[Axes]) -> None:
    """Left: harmonic features at two frequencies, force and response; right: driven modes; the interval shaded."""
    process = Process(Matern(nu=1.5, lengthscale=0.2), FirstOrder(alpha=1.0, beta=0.25))
    a, b = interval = (0.0, 4.0)
    t = jnp.linspace(-1.0, 5.0, 1201)
    harmonic, driven = HarmonicFourier(14, interval=interval), DrivenFourier(14, interval=interval)
    unfiltered = Process(process.force, Identity())
    for row, (index, color) in enumerate(((4, "C0"), (14 + 10, "C3"))):
        shift = -2.5 * row
        axes[0].plot(t, shift + harmonic.cross_covariance(unfiltered, t)[:, index], "--", color=color, lw=0.8)
        axes[0].plot(t, shift + harmonic.cross_covariance(process, t)[:, index], color=color)
    axes[0].set(title="harmonic: VFF (dashed) and VFRF (solid)", xlabel="t", yticks=[])
    modes = driven.whitened(process, t)
    for row, index in enumerate((0, 1, 2, 5, 10)):
        scaled = modes[:, index] / jnp.max(jnp.abs(modes[:, index]))
        axes[1].plot(t, -2.2 * row + scaled, color=f"C{row}")
    axes[1].set(title="driven: modes 0, 1, 2, 5, 10 (scaled)", xlabel="t", yticks=[])
    for ax in axes:
        ax.axvspan(a, b, color="0.93", zorder=0)


def draw_samples(axes: list[Axes]) -> None:
    """One joint draw of a force and its response, first and second order."""
    t = jnp.linspace(0.0, 5.0, 1000)
    filters = (FirstOrder(alpha=1.0, beta=0.3), SecondOrder(mass=1.0, damping=1.5, stiffness=36.0))
    for ax, filter, seed in zip(axes, filters, (3, 4), strict=True):
        process = Process(Matern(nu=1.5, lengthscale=0.3), filter)
        f, u = process.sample(jax.random.key(seed), t, 1)
        ax.plot(t, u[0], color="0.6", label="force u")
        ax.plot(t, f[0] / jnp.sqrt(process.variance()), color="C3", label="response f (standardised)")
        ax.set(title=type(filter).__name__, xlabel="t")
        ax.legend(loc="upper right")


def main() -> None:
    """Print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("basis-functions"))
    run(parser.parse_args().out)


if __name__ == "__main__":
    main()
