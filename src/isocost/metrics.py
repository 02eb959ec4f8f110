"""Every plain measure as a function of arrays: ``isocost.metrics.fpr(y_true, y_score)``.

Each has the signature ``f(y_true, y_score, *, sample_weight=None, threshold=0.5)``, so it works
inside scikit-learn's ``make_scorer`` and fairlearn's ``MetricFrame``.  Where nobody is of the kind
that a measure is about, it is NaN, with a warning: one such group does not stop others.

Examples
--------
>>> import isocost as ic
>>> ic.metrics.fpr([0, 0, 1], [0.25, 0.5, 0.9]), ic.metrics.fpr([0, 0], [0.25, 0.5], threshold=0.6)
(0.5, 0.0)
"""

from isocost.measures import functions
from isocost.measures.functions import __getattr__ as __getattr__
from isocost.measures.functions import calibration_gap as calibration_gap
from isocost.measures.table import MEASURES


def __dir__() -> list[str]:
    return [name for name in MEASURES if hasattr(functions, name)]
