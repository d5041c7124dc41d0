"""Arrays as pictures, for HTML and for matplotlib."""
