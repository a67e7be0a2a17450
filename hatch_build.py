"""Metadata that a package index shows: the README with links that work there, and the project's addresses.

Links and pictures of the README are relative, for readers of the sources. With the address of the repository
in SMALLDB_ADDRESS (https://github.com/OWNER/smalldb) a build writes absolute ones; without it they stay.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")


def absolute(text: str, address: str) -> str:
    """Return a page whose relative links lead to a repository, and whose pictures come from there."""

    def linked(found: re.Match[str]) -> str:
        picture, shown, path = found.groups()
        return f"{picture}[{shown}]({address}/{'raw' if picture else 'blob'}/HEAD/{path})"

    return LINK.sub(linked, text)


class Addresses(MetadataHookInterface):
    """Gives the build what pyproject.toml calls dynamic: readme and urls."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in both."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        address = os.environ.get("SMALLDB_ADDRESS", "").rstrip("/")
        files = {"Documentation": "docs/index.md", "Changes": "CHANGELOG.md", "Security": "SECURITY.md"}
        metadata["urls"] = {}
        if address:
            text = absolute(text, address)
            paths = {name: f"{address}/blob/HEAD/{path}" for name, path in files.items()}
            metadata["urls"] = {"Source": address} | paths
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
