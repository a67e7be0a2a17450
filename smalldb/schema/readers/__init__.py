"""What reads the files of tables: one module a format, and the list of them in `registry`."""
