"""Language models: slots and the models that fill them, prices, classifier calls, and a demonstration model."""
