"""Strategies: what is measured, with which noise and at which cost, and what is made of it."""
