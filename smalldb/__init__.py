"""Synthetic tables under pure differential privacy: the SmallDB mechanism, exact to the last bit."""
