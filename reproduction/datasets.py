"""The data of the paper's three experiments, found on this machine or fetched.

``adult``, ``heart`` and ``compas`` give a :class:`Dataset`: columns, label, and where it all comes
from.  ``scored`` gives the scores that the authors published.  Nothing of this comes with
isocost; ``isocost datasets`` says what is here and under which licence.
"""

from reproduction.adult import adult
from reproduction.catalogue import SOURCES, Item, Source
from reproduction.encoding import one_hot
from reproduction.heart import heart
from reproduction.propublica import compas_table as compas
from reproduction.scored import scored
from reproduction.sources import cache_folder, find, locate
from reproduction.tables import Dataset

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
