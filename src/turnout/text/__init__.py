"""Words: one normaliser, one matcher, one splitter. Everything here is linear in the length of its input."""
