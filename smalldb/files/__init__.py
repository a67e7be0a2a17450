"""What is written: whole files or none, and parts of long runs."""
