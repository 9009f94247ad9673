"""The paper's tables and figures, one module each, and what runs them: `latentforce reproduce NAME`."""

from typing import NamedTuple


class Entry(NamedTuple):
    """What an experiment shows, and where the paper shows it."""

    about: str
    labels: tuple[str, ...]


EXPERIMENTS = {
    "features": Entry(
        "kernels of latent force models, and features: the paper's and driven ones",
        ("fig:basis-functions", "fig:basis-function32", "fig:basis-function52"),
    ),
    "cube": Entry("the map of models, drawn from the presets", ("fig:model-comparison",)),
    "posterior": Entry("how few features stand for the exact posterior", ("fig:vff_vs_rff",)),
    "multistep": Entry(
        "a step function, shallow and deep", ("fig:synthetic", "tab:iddgp-vs-dlfm-vfrf", "fig:hidden-layers")
    ),
    "speech": Entry("a speech signal: learning curves and test scores", ("fig:timit",)),
    "runtime": Entry("seconds a training step", ("tab:running-time",)),
    "uci": Entry("regression on nine tables", ("fig:uci-results",)),
}
