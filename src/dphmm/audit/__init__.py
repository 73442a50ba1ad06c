"""A black-box test of a mechanism against the epsilon that it claims.

Fresh answers are drawn for linked states and held against events and probabilities that were
fixed beforehand. An audit can find a violation; it can never show that there is none. So
every result names its power, and broken mechanisms are audited first.
"""

from dphmm.audit.checks import Finding, bound
from dphmm.audit.controls import (
    CONTROLS,
    Control,
    Subject,
    controls,
    running_example,
    sampler_of,
)
from dphmm.audit.running import DRAWS, FALSE_ALARM, Audit, audit_sampler
from dphmm.audit.sampler import MechanismSampler, Sampler, load

__all__ = [
    "CONTROLS",
    "DRAWS",
    "FALSE_ALARM",
    "Audit",
    "Control",
    "Finding",
    "MechanismSampler",
    "Sampler",
    "Subject",
    "audit_sampler",
    "bound",
    "controls",
    "load",
    "running_example",
    "sampler_of",
]
