"""What the numbers of an audit mean."""
