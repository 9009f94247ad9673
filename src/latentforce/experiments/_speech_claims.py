"""What the paper says of its speech experiment, held against the numbers."""

from typing import Any

import numpy as np

from ._tables import uncertain

SCORES = {"rmse": "RMSE", "nmll": "NMLL"}
LATE = "dlfm-vfrf, freed late"
CLAIMS = (
    ("dlfm-vfrf", "iddgp", "the paper: free ODE parameters are better than none, in both scores and at every M"),
    (LATE, "iddgp", "the paper: freeing them later is better than never"),
    ("dlfm-vfrf", LATE, "the paper: free from the start is best"),
    ("dlfm-vfrf", "dgp", "the paper: better in both scores"),
    ("dlfm-driven", "dlfm-vfrf", "ours against the paper's model"),
)

Found = dict[tuple[str, int], dict[str, Any]]  # by model and M: curves (seeds, points), seeds, steps and more


def verdict(found: Found) -> str:
    """A list, one claim a line."""
    lines = []
    for first, second, claim in CLAIMS:
        parts = [difference(found, first, second, size) for name, size in found if name == first]
        lines += _line(f"`{first}` less `{second}`", parts, claim)
    claim = "the paper: random features have the lowest NMLL and the highest RMSE of its models"
    lines += _line("Extremes", [extremes(found, size) for name, size in found if name == "dlfm-rff"], claim)
    lines += _line(
        f"Largest distance of the mean curves of `{LATE}` and `iddgp` until its ODE parameters are freed",
        [distance(found, size) for name, size in found if name == LATE],
        "the paper: they align closely",
    )
    return "\n".join(lines)


def _line(head: str, parts: list[str], claim: str) -> list[str]:
    given = "; ".join(part for part in parts if part)
    return [f"- {head} ({claim}): {given}."] if given else []


def difference(found: Found, first: str, second: str, size: int) -> str:
    """Mean paired differences of the final scores ± standard errors, on the seeds that both have."""
    if (second, size) not in found:
        return ""
    one, other = found[first, size], found[second, size]
    _, here, there = np.intersect1d(one["seeds"], other["seeds"], return_indices=True)
    if not len(here):
        return ""
    words, better = [], []
    for score, called in SCORES.items():
        gap = one[score][here, -1] - other[score][there, -1]
        words.append(f"{called} {uncertain(gap)}")
        better += [called] if gap.mean() < 0 else []
    judged = f"better in {better[0]} only" if len(better) == 1 else "better in both" if better else "better in neither"
    return f"M = {size}: {', '.join(words)}, {judged}"


def extremes(found: Found, size: int) -> str:
    """The paper's models with the lowest NMLL and the highest RMSE."""
    names = [name for name in ("dlfm-rff", "dgp", "iddgp", "dlfm-vfrf") if (name, size) in found]
    if len(names) < 2:
        return ""
    lowest = min(names, key=lambda name: found[name, size]["nmll"][:, -1].mean())
    highest = max(names, key=lambda name: found[name, size]["rmse"][:, -1].mean())
    return f"M = {size}: lowest NMLL `{lowest}`, highest RMSE `{highest}`"


def distance(found: Found, size: int) -> str:
    """How far the model that is held at beta = 1e-6 and the one without an ODE go apart."""
    if ("iddgp", size) not in found:
        return ""
    late, never = found[LATE, size], found["iddgp", size]
    held = late["steps"] <= late["free_after"]
    gaps = [np.abs(late[score].mean(axis=0) - never[score].mean(axis=0))[held].max() for score in SCORES]
    return f"M = {size}: " + ", ".join(f"{called} {gap:.3f}" for called, gap in zip(SCORES.values(), gaps, strict=True))


def failures(found: Found) -> str:
    """Models that stopped early because a number was not finite."""
    stopped = [
        f"`{name}` at M = {size}, seed {seed}, after {done:.0f} steps"
        for (name, size), one in found.items()
        for seed, done in zip(one["seeds"], one["done"], strict=True)
        if done < one["steps"][-1]
    ]
    return f"Not all training went to its end (a number was not finite): {'; '.join(stopped)}." if stopped else ""
