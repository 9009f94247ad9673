"""Runs the blocks of one page in one namespace: reads the job from the standard input, writes what came out."""

import contextlib
import io
import json
import os
import sys
import time
import warnings
from pathlib import Path

import jax
import matplotlib.pyplot as plt

STYLE = {
    "figure.figsize": (7.4, 3.1),
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": plt.cycler(color=["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]),
    "legend.frameon": False,
    "legend.fontsize": "small",
    "savefig.dpi": 150,  # of parts that are drawn as images
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "latentforce",
    "image.cmap": "cividis",
}


def main() -> None:
    """Run the job."""
    job = json.load(sys.stdin)
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message="Error reading persistent compilation cache")
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_disable_most_optimizations", True)  # compiling is most of the work; values are the same
    plt.rcParams.update(STYLE)
    os.chdir(job["folder"])
    names, outcomes = {"__name__": "__main__"}, []
    for number, block in enumerate(job["blocks"], 1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], f"{job['page']}, block {number}", "exec"), names)
        outcomes.append({"printed": printed.getvalue(), "figures": figures(job, number, block["caption"])})
    (Path(job["folder"]) / "seconds").write_text(f"{time.process_time():.0f}\n")  # of a core, to find what is slow
    (Path(job["folder"]) / "outcome.json").write_text(json.dumps(outcomes))


def figures(job: dict, number: int, caption: str) -> list[str]:
    """Write all open figures, close them, and give their names."""
    stems = []
    for index in plt.get_fignums():
        if not caption:
            raise ValueError(f'block {number} of {job["page"]} draws a figure: it needs a caption="..."')
        stems.append(f"{number}-{index}")
        plt.figure(index).savefig(Path(job["folder"]) / f"{stems[-1]}.svg", metadata={"Date": None})
    plt.close("all")
    return stems


main()
