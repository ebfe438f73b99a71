"""What acts on a decision. Applications do not import one another."""
