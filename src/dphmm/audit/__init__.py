"""A black-box test of a mechanism against the epsilon that it claims.

Fresh answers are drawn for linked states, or along linked paths, and held against events and
probabilities that were fixed beforehand, and against events that other draws have shown. An
audit can find a violation; it can never show that there is none. So every result names its
power, and broken mechanisms are audited first.
"""

from dphmm.audit.checks import Finding, bound
from dphmm.audit.controls import (
    CONTROLS,
    SEQUENCE_SHARE,
    Control,
    Subject,
    controls,
    running_example,
    sampler_of,
)
from dphmm.audit.running import DRAWS, FALSE_ALARM, LEAST_DRAWS, Audit, audit_sampler
from dphmm.audit.sampler import MechanismSampler, Sampler, load
from dphmm.audit.sequences import BatchSampler, StreamSampler, running_sequence

__all__ = [
    "CONTROLS",
    "DRAWS",
    "FALSE_ALARM",
    "LEAST_DRAWS",
    "SEQUENCE_SHARE",
    "Audit",
    "BatchSampler",
    "Control",
    "Finding",
    "MechanismSampler",
    "Sampler",
    "StreamSampler",
    "Subject",
    "audit_sampler",
    "bound",
    "controls",
    "load",
    "running_example",
    "running_sequence",
    "sampler_of",
]
