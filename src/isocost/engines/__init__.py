"""Data in, tally out; rule and data in, repaired data out; on arrays, frames and files."""
