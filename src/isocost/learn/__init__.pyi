from .postprocess import CalibratedEqualizedOdds as CalibratedEqualizedOdds
from .postprocess import EqualizedOdds as EqualizedOdds
from .postprocess import Reconciled as Reconciled
from .recalibrate import GroupCalibrator as GroupCalibrator
from .scorers import cost_disparity_scorer as cost_disparity_scorer
from .trained import EqualizedOddsLogisticRegression as EqualizedOddsLogisticRegression
