"""The data of the paper's three experiments, found on this machine or fetched.

``adult``, ``heart`` and ``compas`` give a :class:`Dataset`: columns, label, and where it all comes
from.  ``scored`` gives the scores that the authors published.  Nothing of this comes with
isocost; ``isocost datasets`` says what is here and under which licence.
"""

from isocost.experiments.adult import adult
from isocost.experiments.catalogue import SOURCES, Item, Source
from isocost.experiments.encoding import one_hot
from isocost.experiments.heart import heart
from isocost.experiments.propublica import compas_table as compas
from isocost.experiments.scored import scored
from isocost.experiments.sources import cache_folder, find, locate
from isocost.experiments.tables import Dataset

__all__ = [
    "SOURCES",
    "Dataset",
    "Item",
    "Source",
    "adult",
    "cache_folder",
    "compas",
    "find",
    "heart",
    "locate",
    "one_hot",
    "scored",
]
