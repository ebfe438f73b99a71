"""Finding passages, and checking that what is said of them is in them."""
