"""isocost: risk scores that stay calibrated and whose errors cost every group the same.

Everything is arithmetic on a tally, one small table made in one pass over any data; and every
repair is a rule, one small table that any engine can apply.  The public names are listed in
``__init__.pyi`` and loaded when they are first used, so that importing isocost stays cheap.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
