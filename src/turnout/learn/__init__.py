"""The flywheel: from labelled questions to a student that serves, and back."""
