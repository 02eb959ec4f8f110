from .change import ChangeDisplay as ChangeDisplay
from .plane import PlaneDisplay as PlaneDisplay
from .reliability import ReliabilityDisplay as ReliabilityDisplay
from .thresholds import ReconcilableDisplay as ReconcilableDisplay
from .tradeoff import FrontierDisplay as FrontierDisplay
