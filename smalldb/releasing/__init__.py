"""A release: the data's way to a synthetic table, its record, its evaluation and the ledger."""
