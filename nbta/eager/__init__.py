"""Array operations that run at once."""
