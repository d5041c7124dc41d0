"""Statistics along axes, and distributions."""
