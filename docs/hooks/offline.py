"""The site is read without a network: a page that would fetch something by itself fails the build."""

import re
from typing import Any

from mkdocs.exceptions import PluginError

FETCHED = re.compile(r'<(?:script|img|iframe|source|link)\b[^>]*\b(?:src|href)="(https?:)?//[^"]*"')


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Look for what a browser would fetch by itself."""
    found = FETCHED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} would fetch something from a network: {found[0]}")
    return output
