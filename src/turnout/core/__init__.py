"""The engine: values, the one loop and its two drivers. Pure Python over msgspec; imports nothing else of ours."""
