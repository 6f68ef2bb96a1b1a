"""Decisions and their data: pure, with the clock as an argument."""
