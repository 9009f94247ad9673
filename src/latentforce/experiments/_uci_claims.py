"""What holds on tables: mean ranks of all models, and pairs of them compared, on the splits that both have."""

from typing import Any

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from ._tables import table

SCORES = {"rmse": "RMSE", "nmll": "NMLL"}
WIDE = "ours-wide"
PEER = "gpytorch"  # its deep GP with 100 inducing points
CLEAR = 2  # standard errors
Found = dict[str, dict[str, dict[str, Any]]]  # of each set and model, its splits and their scores


def ranks(found: Found) -> str:
    """Mean ranks over sets, for the models that all sets have, and Nemenyi's critical difference at 5 %.

    Of each set only those splits count that all of these models have: means over others would not be comparable.
    """
    names = [name for name in next(iter(found.values())) if all(name in row for row in found.values())]
    comparable = len(names) >= 3 and all(_shared([row[name] for name in names], "rmse").size for row in found.values())
    if len(found) < 3 or not comparable:
        return ""
    rows = []
    for score, called in SCORES.items():
        means = np.array([np.mean(_shared([row[name] for name in names], score), axis=1) for row in found.values()])
        average = rankdata(means, axis=1).mean(axis=0)
        p = friedmanchisquare(*means.T).pvalue
        rows.append((called, average, p))
    k, n = len(names), len(found)
    critical = float(studentized_range.ppf(0.95, k, np.inf)) / 2**0.5 * (k * (k + 1) / (6 * n)) ** 0.5
    lines = [[name, *(float(average[i]) for _, average, _ in rows)] for i, name in enumerate(names)]
    lines.sort(key=lambda line: line[2])
    tests = ", ".join(f"{called} p = {p:.1e}" for called, _, p in rows)
    head = f"Mean ranks over {n} sets, by the splits that all have (1 is best). Friedman's test: {tests}. Two models"
    return f"{head} differ at the 5 % level where their ranks are {critical:.2f} apart (Nemenyi).\n\n" + table(
        ["model", *(f"rank by {called}" for called in SCORES.values())], lines
    )


CLAIMS = (
    ("dlfm-vfrf-2", "iddgp-2", "the paper: so on energy, power and naval"),
    ("dlfm-vfrf-2", "dlfm-vfrf-1", "the paper: more layers are generally better"),
    ("dlfm-vfrf-3", "dlfm-vfrf-2", "the paper: more layers are generally better"),
    ("iddgp-3", "iddgp-2", "the paper: more layers are generally better"),
    ("dgp-3", "dgp-2", "the paper: more layers are generally better"),
    ("dlfm-rff-3", "dlfm-rff-2", "the paper: more layers are generally better"),
    ("dlfm-driven-3", "dlfm-driven-2", "more layers of driven features"),
    ("ours-3", "ours-2", "more layers of ours"),
    ("dlfm-vfrf-3", "iddgp-3", "as with two layers"),
    ("dlfm-driven-2", "dlfm-vfrf-2", "driven against the paper's features, all else equal"),
    ("ours-2", "dlfm-vfrf-2", "ours against the paper's model"),
    ("ours-2", f"{PEER}-2", "ours against gpytorch's deep GP with 100 inducing points"),
    (f"{WIDE}-2", "ours-2", "more directions and an average, at an equal number of steps in all"),
    (f"{WIDE}-2", f"{PEER}-2", "these against gpytorch's"),
)


def verdict(found: Found) -> str:
    """For each comparison, the sets on which the first has the better mean, and whether that may be luck."""
    lines = []
    for first, second, about in CLAIMS:
        pairs = {one: [row[first], row[second]] for one, row in found.items() if first in row and second in row}
        pairs = {one: pair for one, pair in pairs.items() if _shared(pair, "rmse").size}
        if pairs:
            said = "; ".join(_better(pairs, score) for score in SCORES)
            lines.append(f"- `{first}` before `{second}` {said}. ({about})")
    if not lines:
        return ""
    return f"Bold: by more than {CLEAR} standard errors of the paired difference.\n\n" + "\n".join(lines)


def _better(pairs: dict[str, list[dict[str, Any]]], score: str) -> str:
    """The sets on which the first is lower, on the splits that both have; and on which it is clearly higher."""
    ahead, behind = [], []
    for one, pair in pairs.items():
        first, second = _shared(pair, score)
        less = second - first
        error = less.std(ddof=1) / len(less) ** 0.5 if len(less) > 1 else np.inf
        clear = abs(less.mean()) > CLEAR * error
        if less.mean() > 0:
            ahead.append(f"**{one}**" if clear else one)
        elif clear:
            behind.append(f"**{one}**")
    said = f"by {SCORES[score]} on {len(ahead)} of {len(pairs)} ({', '.join(ahead) or 'none'})"
    return said + (f", behind on {', '.join(behind)}" if behind else "")


def _shared(rows: list[dict[str, Any]], score: str) -> np.ndarray:
    """Scores (models, splits) on the splits that all have."""
    seeds = sorted(set.intersection(*(set(row["seeds"]) for row in rows)))
    return np.array([[row[score][row["seeds"].index(seed)] for seed in seeds] for row in rows])
