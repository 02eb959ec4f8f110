from .calibrator import GroupCalibrator as GroupCalibrator
from .postprocess import CalibratedEqualizedOdds as CalibratedEqualizedOdds
from .postprocess import EqualizedOdds as EqualizedOdds
from .postprocess import HandOver as HandOver
from .postprocess import Reconciled as Reconciled
from .scorers import cost_disparity_scorer as cost_disparity_scorer
from .trained import EqualizedOddsLogisticRegression as EqualizedOddsLogisticRegression
