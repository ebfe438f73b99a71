"""Builds profiles from TOML: finds and merges the files, reports every mistake at once."""
