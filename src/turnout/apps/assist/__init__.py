"""A documentation-and-code assistant: what a question is decides whether documents are searched, and who answers."""
