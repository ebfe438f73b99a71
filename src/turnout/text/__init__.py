"""Text processing: one normaliser, one matcher, one splitter. Everything runs in time linear in its input."""
