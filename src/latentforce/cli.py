"""The command line: `latentforce demo`, `latentforce --version`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ._version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        return options.run(options)
    except (OSError, ValueError) as error:
        print(f"latentforce: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="latentforce", description="Gaussian processes driven through differential equations, shallow and deep."
    )
    parser.add_argument("--version", action="version", version=f"latentforce {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    demo = commands.add_parser(
        "demo", help="train a deep latent force model on a step function and compare it with a shallow one"
    )
    demo.add_argument(
        "--out", type=Path, default=Path("latentforce-demo"), help="folder for the picture (default: %(default)s)"
    )
    demo.add_argument("--steps", type=int, help="training steps of each model (default: enough for a good fit)")
    demo.set_defaults(run=_demo)
    return parser


def _demo(options: argparse.Namespace) -> int:
    from . import demo  # here, not above: it draws, and --help need not wait for a plotting library

    demo.run(options.out, options.steps)
    return 0
