"""A page about a release: one self-contained file of HTML, pictures inline, nothing from elsewhere."""

from smalldb.reporting.page.assembly import Comparison, page
from smalldb.reporting.page.describing import About

__all__ = ["About", "Comparison", "page"]
