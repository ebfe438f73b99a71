"""Pages over public functions of store, explain, learn and runtime."""
