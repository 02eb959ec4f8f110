"""From a tally to numbers: measures, intervals, feasibility, theorems."""
