"""The server: a literal table of routes, one authentication, one way in and one way out for every request."""
