"""A reader asks about a page, and gets the context that the question needs: no more is sent, and no more is read."""
