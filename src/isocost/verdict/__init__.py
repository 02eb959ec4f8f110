"""The meaning of the numbers of an audit."""
