"""Wide tables in rounds: select a table, measure it, fit a model; then rows, and a certificate."""
