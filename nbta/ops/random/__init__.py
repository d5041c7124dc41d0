"""Random bits and draws."""
