"""The command line; each command is one function of a module here."""

from isocost.cli.app import main

__all__ = ["main"]
