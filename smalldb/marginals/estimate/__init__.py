"""What is believed of the data, given measurements: a model, and what it predicts."""
