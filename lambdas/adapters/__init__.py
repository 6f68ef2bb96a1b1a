"""One module per outside system; adapters import core and never each other."""
