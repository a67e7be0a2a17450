"""Rows that are near to what was released."""
