"""One self-contained HTML page from the record of a run."""
