"""Exact SmallDB where no census fits: rejection from what can be counted."""
