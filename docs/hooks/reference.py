"""The reference is complete: every public name is on a page of it, and has a docstring, as have its public parts."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

MODULES = ("latentforce", "latentforce.plots", "latentforce.report", "latentforce.datasets", "latentforce.extending")
ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)


def on_pre_build(config: Any) -> None:
    """Compare the pages with the package."""
    from mkdocs.exceptions import PluginError  # here: the tests look for faults without it

    found = faults(Path(config["docs_dir"]) / "reference")
    if found:
        raise PluginError("the reference is not complete:\n" + "\n".join(found))


def faults(folder: Path) -> list[str]:
    """What is missing in the pages of the reference, or is too much."""
    listed = entries(folder)
    wanted = [f"{module}.{name}" for module in MODULES for name in public(module)]
    found = [f"{name} is in no page of the reference" for name in wanted if name not in listed]
    found += [f"{name} is in the reference but not public" for name in listed if name not in wanted]
    found += [f"{name} is there {listed.count(name)} times" for name in set(listed) if listed.count(name) > 1]
    found += [f"{part} has no docstring" for name in wanted for part in undocumented(name)]
    return sorted(found)


def entries(folder: Path) -> list[str]:
    """The names that the pages of the reference describe."""
    return [name for page in sorted(folder.glob("*.md")) for name in ENTRY.findall(page.read_text())]


def public(module: str) -> list[str]:
    """What a module says is public; of one that says nothing, the functions that it defines."""
    loaded = importlib.import_module(module)
    own = [name for name, value in vars(loaded).items() if getattr(value, "__module__", None) == module]
    return list(getattr(loaded, "__all__", [name for name in own if not name.startswith("_")]))


def undocumented(name: str) -> list[str]:
    """The name, and the public parts of a class, as far as nothing is said of them."""
    module, _, own = name.rpartition(".")
    thing = getattr(importlib.import_module(module), own)
    parts = {name: thing}
    if inspect.isclass(thing):
        members = {part: value for part, value in vars(thing).items() if not part.startswith("_")}
        parts |= {f"{name}.{part}": getattr(thing, part) for part, value in members.items() if _speaks(value)}
    return [part for part, value in parts.items() if not inspect.getdoc(value)]


def _speaks(value: Any) -> bool:
    return callable(value) or isinstance(value, property | classmethod | staticmethod)
