"""Noisy measurements of tables and contrasts, an estimate that is fitted to them, and rows that match it."""
