"""The command line: isocost audit, fit, apply, demo."""

from isocost.cli.app import main

__all__ = ["main"]
