"""From TOML to a profile: find and merge the files, report every mistake at once, build."""
