"""Contrasts of columns: the parities that queries are made of, and what released ones are believed to be."""
