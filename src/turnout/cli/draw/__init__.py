"""Pictures and tables: values in, something to print out. Nothing here reads a file or decides anything."""
