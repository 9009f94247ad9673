"""The arguments of the command line."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from .._version import __version__
from ..experiments import EXPERIMENTS
from ..presets import PRESETS

DATA = "CSV, TSV (also .gz, .bz2, .xz, .zst), Parquet, .npy, .npz or WAV"


class Usage(Exception):
    """A call that is not understood."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raised, not printed: it may be wanted as JSON."""
        raise Usage(f"{message} (see {self.prog} --help)")


def parser() -> argparse.ArgumentParser:
    """Of all commands."""
    main = _Parser(
        prog="latentforce", description="Gaussian processes driven through differential equations, shallow and deep."
    )
    main.add_argument("--version", action="version", version=f"latentforce {__version__}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND")
    for name, (about, add) in COMMANDS.items():
        one = commands.add_parser(name, help=about, description=about)
        add(one)
        one.add_argument("--json", action="store_true", help="answer with one JSON object, also for errors")
        one.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return main


def _fit(one: argparse.ArgumentParser) -> None:
    one.add_argument("data", type=Path, metavar="DATA", help=DATA)
    one.add_argument(
        "--target", action="append", required=True, metavar="COLUMN", help="what to predict; may be given several times"
    )
    one.add_argument("--inputs", nargs="+", metavar="COLUMN", help="what to predict it from (default: all others)")
    one.add_argument(
        "--model", choices=PRESETS, default="dlfm-driven", metavar="NAME", help="see `latentforce models` (%(default)s)"
    )
    one.add_argument("--classify", action="store_true", help="the target is a class (text always is)")
    one.add_argument("--likelihood", metavar="NAME", help="gaussian (default), student-t, heteroscedastic or poisson")
    one.add_argument(
        "--ode",
        nargs="+",
        type=float,
        metavar="A",
        help="a known ODE, A0 f + A1 f' + ... = force, in units of the one input (default: first order, learned)",
    )
    one.add_argument("--depth", type=_count, metavar="N", help="layers (default: the model's)")
    one.add_argument("--frequencies", type=_count, metavar="N", help="of each process (default: from the data)")
    one.add_argument("--steps", type=_count, metavar="N", help="of training (default: from the data)")
    one.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is random (default: %(default)s)")
    one.add_argument(
        "--test-share", type=_share, metavar="SHARE", help="of the rows to hold out and score the model on"
    )
    one.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="write the state of the training there now and then"
    )
    one.add_argument(
        "--every", type=_count, default=1000, metavar="N", help="steps between them (default: %(default)s)"
    )
    one.add_argument("--resume", action="store_true", help="go on from the checkpoint, if it is there")
    one.add_argument(
        "--devices", type=_devices, metavar="N", help="train on so many devices, or on `all`, also of other processes"
    )
    one.add_argument("--quiet", action="store_true", help="no progress bar, no summary")
    _out(one, "model file (default: the name of the data with .lforce, in this folder)")


def _predict(one: argparse.ArgumentParser) -> None:
    _model_and_data(one)
    _coverage(one)
    _out(one, "CSV, TSV, Parquet or .npz (default: CSV on the standard output)")


def _evaluate(one: argparse.ArgumentParser) -> None:
    _model_and_data(one)


def _force(one: argparse.ArgumentParser) -> None:
    _model_and_data(one, data=None)
    one.add_argument("--layer", type=int, default=0, metavar="N", help="from 0, the first (default)")
    one.add_argument("--index", type=int, default=0, metavar="N", help="which output's force, or shared force")
    one.add_argument("--direction", type=int, default=0, metavar="N", help="which input's")
    one.add_argument(
        "--points", type=_count, default=200, metavar="N", help="times in the table (default: %(default)s)"
    )
    _coverage(one)
    _out(one, "CSV, TSV, Parquet or .npz (default: CSV on the standard output)")


def _report(one: argparse.ArgumentParser) -> None:
    _model_and_data(one, data="?")
    _out(one, "HTML file", required=True)


def _models(one: argparse.ArgumentParser) -> None:
    del one  # it has no arguments of its own


def _demo(one: argparse.ArgumentParser) -> None:
    folder = Path("latentforce-demo")
    one.add_argument("--out", type=Path, default=folder, help="folder for the picture (default: %(default)s)")
    one.add_argument("--steps", type=_count, help="training steps of each model (default: enough for a good fit)")


def _reproduce(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "name",
        choices=[*EXPERIMENTS, "all", "list"],
        metavar="NAME",
        help=f"{', '.join(EXPERIMENTS)}; `all` of them, or `list` for what they are",
    )
    one.add_argument("--quick", action="store_true", help="the same in minutes on two cores: less data, fewer steps")
    one.add_argument("--data", type=Path, metavar="PATH", help="a WAV file, or a folder of tables (default: built in)")
    one.add_argument("--seeds", type=_count, metavar="N", help="repetitions (default: as many as the paper's)")
    one.add_argument("--jobs", type=int, default=1, metavar="N", help="pieces of work at a time (default: %(default)s)")
    one.add_argument("--dask", metavar="ADDRESS", help="of a Dask scheduler whose workers do the work")
    one.add_argument(
        "--only",
        nargs="+",
        type=_pair,
        default=[],
        metavar="KEY=VALUE",
        help="a part of the work, such as: set=energy set=yacht depth=3",
    )
    one.add_argument("--again", action="store_true", help="measure also what is there already")
    one.add_argument(
        "--out", type=Path, default=Path("reproduced"), metavar="FOLDER", help="for the results (default: %(default)s)"
    )


def _bench(one: argparse.ArgumentParser) -> None:
    parts = ("steps", "prediction", "together", "start")
    one.add_argument("--quick", action="store_true", help="the smallest size alone, and fewer rounds")
    one.add_argument("--parts", nargs="+", choices=parts, default=parts, help="what to measure (default: all)")
    one.add_argument(
        "--models",
        nargs="+",
        choices=[name for name, preset in PRESETS.items() if preset.deep],
        default=("dlfm-vfrf", "dlfm-driven"),
        metavar="NAME",
        help="whose steps to time (default: %(default)s)",
    )
    _out(one, "JSON file for the record")


def _model_and_data(one: argparse.ArgumentParser, data: str | None = "1") -> None:
    one.add_argument("model", type=Path, metavar="MODEL", help="a file that `latentforce fit` wrote")
    if data is not None:
        one.add_argument("data", type=Path, metavar="DATA", nargs=None if data == "1" else data, help=DATA)


def _coverage(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--coverage", type=_share, default=0.9, metavar="SHARE", help="of the interval (default: %(default)s)"
    )


def _out(one: argparse.ArgumentParser, about: str, **options: Any) -> None:
    one.add_argument("--out", type=Path, metavar="FILE", help=about, **options)
    one.add_argument("--force", action="store_true", help="replace files that are there")


def _count(text: str) -> int:
    """A positive whole number."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive whole number, got {text!r}")
    return int(text)


def _pair(text: str) -> tuple[str, str]:
    """A name and a value."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, got {text!r}")
    return key, value


def _devices(text: str) -> int | str:
    """A positive whole number, or "all"."""
    return text if text == "all" else _count(text)


def _share(text: str) -> float:
    """A number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1, got {text!r}")
    return value


COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "fit": ("train a model on a data file and save it", _fit),
    "predict": ("predict the rows of a data file, with intervals", _predict),
    "evaluate": ("score a model on a data file that has the targets", _evaluate),
    "force": ("the hidden force of a model, as a table", _force),
    "report": ("write a page on a model that any browser shows", _report),
    "models": ("list the models by name", _models),
    "reproduce": ("regenerate a table or figure of the paper", _reproduce),
    "bench": ("time training and prediction on this machine, beside what it could do", _bench),
    "demo": ("train a deep latent force model on a step function and compare it with a shallow one", _demo),
}
