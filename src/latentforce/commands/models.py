"""`latentforce models`: the presets and their place on the axes."""

from argparse import Namespace

from ..presets import PRESETS
from . import Outcome, aligned


def run(options: Namespace) -> Outcome:
    """The table of names."""
    models = {
        name: {
            "features": preset.features or "none",
            "ode": preset.ode,
            "depth": "deep" if preset.deep else "shallow",
            "inference": "variational" if preset.features else "exact",
            "about": preset.about,
        }
        for name, preset in PRESETS.items()
    }
    rows = [(name, *("yes" if one is True else one or "no" for one in row.values())) for name, row in models.items()]
    header = ("name", "features", "ODE", "depth", "inference", "what it is")
    return Outcome({"models": models}, aligned([header, *rows]))
