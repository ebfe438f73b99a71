"""The composition root: puts settings, model slots, HTTP client, embedder, store and live routers together."""
