"""The composition root: settings, slots, client, embedder, store and live routers, put together in one place."""
