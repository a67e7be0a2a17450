"""How a release is shown: words, plots and the page."""
