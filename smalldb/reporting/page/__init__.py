"""A page about a release: one self-contained file of HTML, pictures inline, nothing from elsewhere."""

from smalldb.reporting.page.about import About
from smalldb.reporting.page.comparing import Comparison
from smalldb.reporting.page.writing import page

__all__ = ["About", "Comparison", "page"]
