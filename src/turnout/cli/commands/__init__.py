"""One file for each command: it parses what was typed, calls what does the work, and has the result drawn."""
