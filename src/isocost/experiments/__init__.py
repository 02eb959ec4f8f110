"""The paper's experiments, and the data that come with the package."""

from isocost.experiments.compas import compas, compas_rows

__all__ = ["compas", "compas_rows"]
