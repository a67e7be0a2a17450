"""A page about a release: one self-contained file of HTML, pictures inline, nothing from elsewhere."""

from smalldb.reporting.page.about import About
from smalldb.reporting.page.assembly import page
from smalldb.reporting.page.comparison import Comparison

__all__ = ["About", "Comparison", "page"]
