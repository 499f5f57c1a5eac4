"""The few forms that a metric can have. A form knows how it is counted, resampled, paired and streamed.

Of scores (`Form`; a tally determines them):
    Crossing      read where a condition begins to hold along the thresholds (EER, TPR at an FPR)
    MinimumCost   the least of  a · miss rate + b · false-alarm rate  over all thresholds (minDCF)
    AtThreshold   read at one fixed threshold (actDCF, accuracy of a fixed rule)
    ClassSums     a function of a sum over positives and a sum over negatives (Cllr, Brier)
    PairShare     the share of (positive, negative) pairs in the right order (ROC AUC)
    Whole         anything else that a tally determines (average precision, hull EER)
Of decisions:
    OfCounts      a function of the counts of decisions
Of any columns:
    OfConfidences a function of how often each confidence was right and wrong
    OfTerms       a sum over trials divided by another (the drift of an error rate, a share of records)
    OfWeights     a function of arrays and of the weights of many replicates at once (the mean area of several classes)
    OfColumns     a function of arrays, called again for each replicate

The engines (`stats.replicates`, `stats.units`, `stats.paired`, `stats.sketch`, `outofcore`) ask a form what it
needs and give it their draws.
"""

from hitmiss.stats.forms.at_threshold import AtThreshold
from hitmiss.stats.forms.base import Form, Functional, Located
from hitmiss.stats.forms.crossing import Crossing, equal_error
from hitmiss.stats.forms.least_cost import MinimumCost
from hitmiss.stats.forms.sums import ClassSums, PairShare
from hitmiss.stats.forms.trials import OfColumns, OfConfidences, OfCounts, OfTerms, OfTrials, OfWeights
from hitmiss.stats.forms.whole import Whole

__all__ = [
    "AtThreshold",
    "ClassSums",
    "Crossing",
    "Form",
    "Functional",
    "Located",
    "MinimumCost",
    "OfColumns",
    "OfConfidences",
    "OfCounts",
    "OfTerms",
    "OfTrials",
    "OfWeights",
    "PairShare",
    "Whole",
    "equal_error",
]
