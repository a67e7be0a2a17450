"""The census: how many small databases stand at each score level, exactly."""
