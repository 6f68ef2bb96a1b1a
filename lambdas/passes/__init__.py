"""A pass asks what should be true now and does what is missing: gather, decide, apply, tell."""
