"""What releases cost: per release, event, window, sequence, several queries at once.

A loss is the largest logarithm of the ratio between the probabilities that two states, or
two paths, give to the same releases. A loss that comes back as a `Fraction` is exact; a
`float` is infinite, or rounded up where exact numbers would not fit 64 bits.
"""

from dphmm.cost.bracket import Bracket, path_epsilon, sequence_bracket
from dphmm.cost.charges import Charge, Loss, constrained_epsilon, worst_pair
from dphmm.cost.composition import Composition, compose
from dphmm.cost.history import History
from dphmm.cost.leakage import Leakage, realised_leakage, temporal_leakage
from dphmm.cost.privacy_loss import PrivacyLoss, privacy_loss
from dphmm.cost.realised import realised_odds
from dphmm.cost.sequences import TIGHT_STATES, paper_sequence_epsilon, sequence_epsilon
from dphmm.cost.statement import PrivacyStatement, privacy_statement
from dphmm.cost.tells import Tells
from dphmm.cost.whereabouts import Whereabouts, whereabouts
from dphmm.cost.windows import event_epsilon, window_epsilon

__all__ = [
    "TIGHT_STATES",
    "Bracket",
    "Charge",
    "Composition",
    "History",
    "Leakage",
    "Loss",
    "PrivacyLoss",
    "PrivacyStatement",
    "Tells",
    "Whereabouts",
    "compose",
    "constrained_epsilon",
    "event_epsilon",
    "paper_sequence_epsilon",
    "path_epsilon",
    "privacy_loss",
    "privacy_statement",
    "realised_leakage",
    "realised_odds",
    "sequence_bracket",
    "sequence_epsilon",
    "temporal_leakage",
    "whereabouts",
    "window_epsilon",
    "worst_pair",
]
