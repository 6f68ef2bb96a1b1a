"""An AWS of its own for the local run."""
