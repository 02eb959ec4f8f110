"""The command line: isocost audit, fit, compare, apply, demo."""

from isocost.cli.app import main

__all__ = ["main"]
