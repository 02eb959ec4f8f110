"""isocost inside scikit-learn: estimators that repair, recalibrate, and train with equal odds.

The public names are listed in ``__init__.pyi`` and loaded when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
