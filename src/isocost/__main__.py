"""``python -m isocost``, the same as the command ``isocost``."""

from isocost.cli import main

if __name__ == "__main__":
    main()
