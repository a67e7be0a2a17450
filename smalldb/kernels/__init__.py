"""All compiled code, one file an algorithm."""
