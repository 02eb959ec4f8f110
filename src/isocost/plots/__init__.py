"""Pictures of tallies, audits and rules, in the manner of scikit-learn's displays.

A display holds the numbers it draws; ``plot`` draws them on the axes it is given, or on a new
figure.  The public names are listed in ``__init__.pyi`` and loaded when they are first used, and
matplotlib only by ``plot``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
