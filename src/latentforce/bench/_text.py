"""The record as text."""

from typing import Any

from ..commands import aligned


def text(record: dict[str, Any]) -> str:
    """Machine, floors, times and ratios, a table for each part."""
    parts = [_machine(record)]
    for name, write in {"steps": _steps, "prediction": _prediction, "together": _together, "start": _start}.items():
        if name in record:
            parts.append(write(record[name]))
    return "\n\n".join(parts)


def _machine(record: dict[str, Any]) -> str:
    machine = record["machine"]
    lines = [f"{machine['name']}, {machine['cores']} cores, jax {machine['jax']}, load at the start: {machine['load']}"]
    for dtype, rate in record["rates"].items():
        lines.append(
            f"{dtype}: {rate['flops'] / 1e9:.4g} GFLOP/s in products, {rate['bytes'] / 1e9:.4g} GB/s of memory"
        )
    peers = machine["peers"]
    if peers is None:
        lines.append('gpytorch and torch are not installed (pip install "latentforce[benchmarks]"): no peers')
    else:
        lines.append(
            f"torch {peers['torch']} on {peers['device']}, {peers['threads']} threads; gpytorch {peers['gpytorch']}"
        )
    return "\n".join(lines)


COLUMNS = ("a training step", "dtype", "N", "S", "M", "ms", "goal", "paper's code", "floor: flops", "bytes", "x floor")


def _steps(rows: list[dict[str, Any]]) -> str:
    table: list[tuple[Any, ...]] = [COLUMNS]
    verdicts = []
    for row in rows:
        cells = (row["model"], row["dtype"], row["N"], row["S"], row["M"], 1e3 * row["seconds"])
        if "over_floor" in row:
            floors = (1e3 * row["flops_floor"], 1e3 * row["bytes_floor"], row["over_floor"])
            table.append((*cells, row["goal"], row["published"], *floors))
        else:
            table.append((*cells, "", "", "", "", ""))
            ratios = ", ".join(f"{ratio:.1f} x {name}" for name, ratio in row["over_ours"].items())
            verdicts.append(f"{row['model']}, {row['dtype']}, M = {row['M']}: {ratios}")
    return "\n".join([aligned(table), *verdicts])


def _prediction(rows: list[dict[str, Any]]) -> str:
    header = ("prediction", "dtype", "M", "rows", "samples", "points a second")
    keys = ("model", "dtype", "M", "rows", "samples")
    return aligned([header, *((*(row[key] for key in keys), f"{row['points_a_second']:,.0f}") for row in rows)])


def _together(row: dict[str, Any]) -> str:
    times = (
        f"{1e3 * row['all']:.3g} ms a step for {row['seeds']} seeds in one program, {1e3 * row['one']:.3g} ms for one"
    )
    return f"{row['model']}: {times}: {row['ratio']:.2f} times"


def _start(rows: dict[str, dict[str, float]]) -> str:
    header = ("seconds of a first fit", "import", "build", "fit, to the first step")
    return aligned([header, *((name, row["import"], row["build"], row["fit"]) for name, row in rows.items())])
