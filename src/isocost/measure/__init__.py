"""Tally in, numbers out: rates, calibration, feasibility, disparity, audit."""
