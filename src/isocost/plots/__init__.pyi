from .change import ChangeDisplay as ChangeDisplay
from .needed import RepairPlanDisplay as RepairPlanDisplay
from .plane import PlaneDisplay as PlaneDisplay
from .predictive import NetBenefitDisplay as NetBenefitDisplay
from .predictive import PredictiveValuesDisplay as PredictiveValuesDisplay
from .reconcilable import ReconcilableDisplay as ReconcilableDisplay
from .reliability import ReliabilityDisplay as ReliabilityDisplay
from .tradeoff import FrontierDisplay as FrontierDisplay
