"""Speed beside peers and beside the limit, as ratios within one run."""
