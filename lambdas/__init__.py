"""Everything that runs in AWS: one asset for all functions."""
