"""Exact numbers and exact draws: no float stands between a fraction and what is drawn with it."""
