"""All measurements as one record."""

from collections.abc import Callable, Sequence
from typing import Any

from ..experiments import _peers
from . import _machine, _others, _steps

PARTS = ("steps", "prediction", "together", "start")


def measure(
    quick: bool = False,
    parts: Sequence[str] = PARTS,
    models: Sequence[str] = _steps.MODELS,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The machine and what was asked for; `tell` hears what is being measured."""
    machine = _machine.describe()
    chosen = _steps.sizes(machine["device"], quick)
    record: dict[str, Any] = {"machine": machine | _torch(), "quick": quick}
    if "start" in parts:
        tell("first fit")
        record["start"] = _others.first_fit()
    tell("rates of the machine")
    dtypes = list(dict.fromkeys(size.dtype for size in chosen))
    record["rates"] = {dtype: _machine.rates(dtype, quick) for dtype in dtypes}
    if "steps" in parts:
        record["steps"] = []
        for size in chosen:
            tell(f"steps: {size.dtype}, N = {size.N}, S = {size.S}, M = {size.M}")
            record["steps"] += _steps.measure(size, record["rates"][size.dtype], quick, tuple(models))
    if "prediction" in parts:
        tell("predictions")
        record["prediction"] = _others.prediction(chosen[0], quick)
    if "together" in parts:
        tell("many models in one program")
        record["together"] = _others.together(quick)
    return record


def _torch() -> dict[str, Any]:
    """Versions and threads of the peers, or that they are not here."""
    if _peers.platform() is None:
        return {"peers": None}
    import gpytorch  # pyright: ignore[reportMissingImports]
    import torch  # pyright: ignore[reportMissingImports]

    where = {"device": _peers.platform(), "threads": torch.get_num_threads()}
    return {"peers": {"torch": torch.__version__, "gpytorch": gpytorch.__version__} | where}
