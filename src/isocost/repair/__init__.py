"""Tally in, rule out: the ways to make errors cost every group the same."""
