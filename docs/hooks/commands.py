"""The page of the command line, made from the parser itself: what `--help` says."""

import argparse
from functools import partial
from typing import Any

from latentforce.commands._arguments import parser

MARK = "<!-- the commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put all commands where the page wants them."""
    return markdown.replace(MARK, described(parser())) if MARK in markdown else markdown


def described(main: argparse.ArgumentParser) -> str:
    """A section for each command."""
    (commands,) = (action for action in main._actions if isinstance(action, argparse._SubParsersAction))
    return "\n\n".join(_section(name, one) for name, one in commands.choices.items())


def _section(name: str, one: argparse.ArgumentParser) -> str:
    one.formatter_class = partial(argparse.HelpFormatter, width=88)
    usage = one.format_usage().removeprefix("usage: ").rstrip()
    about = f"{one.description[0].upper()}{one.description[1:]}." if one.description else ""
    rows = [_row(one, action) for action in one._actions if not isinstance(action, argparse._HelpAction)]
    table = "\n".join(["| argument | meaning |", "|---|---|", *rows])
    return f"## latentforce {name} {{ #{name} }}\n\n{about}\n\n```text\n{usage}\n```\n\n{table}"


def _row(one: argparse.ArgumentParser, action: argparse.Action) -> str:
    helped = one._get_formatter()._expand_help(action) if action.help else ""
    names = ", ".join(f"`{option}`" for option in action.option_strings) or f"`{action.metavar or action.dest}`"
    value = f" `{action.metavar or action.dest.upper()}`" if action.option_strings and action.nargs != 0 else ""
    return f"| {names}{value} | {helped.replace('|', chr(92) + '|')} |"
