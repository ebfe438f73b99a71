"""Profiles as data: TOML files, their golden cases, no code."""
