"""A local page that makes the report of a file."""
