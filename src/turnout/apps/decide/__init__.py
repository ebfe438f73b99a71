"""Deciding itself: what happens next with a question, why, and whether that was right."""
