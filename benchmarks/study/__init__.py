"""The parts of the study benchmark."""
