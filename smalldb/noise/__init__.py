"""Exact noise of integers: what is added to counts, and what it does not exceed."""
