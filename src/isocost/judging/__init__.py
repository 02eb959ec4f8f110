"""Judging: an audit of a tally, and what rules do, to whom, and whether to take them."""
