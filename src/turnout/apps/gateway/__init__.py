"""The gateway: a client changes its base URL, asks for `auto`, and the cheapest sufficient model answers."""
