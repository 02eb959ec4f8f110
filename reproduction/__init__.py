"""The experiments of "On Fairness and Calibration" (Pleiss et al., NeurIPS 2017), rerun.

``python -m reproduction`` trains the models, draws the figures and checks the paper's claims;
``python -m reproduction data`` lists and fetches the data.  None of this is part of the wheel.
"""
