"""One HTML page, and drawings for a terminal."""
