"""What follows from published measurements."""
