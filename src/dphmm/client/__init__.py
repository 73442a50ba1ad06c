"""A service's client: `Client`, `AsyncClient` and what they give back."""

from dphmm.client.clients import AsyncClient, Client
from dphmm.client.results import (
    Act,
    Answer,
    Erased,
    KeyFacts,
    LedgerEntry,
    LedgerFacts,
    MadeKey,
    Near,
    PathCosts,
    Person,
    ScenarioFacts,
    Statement,
    Tells,
    Track,
    Verdict,
)

__all__ = [
    "Act",
    "Answer",
    "AsyncClient",
    "Client",
    "Erased",
    "KeyFacts",
    "LedgerEntry",
    "LedgerFacts",
    "MadeKey",
    "Near",
    "PathCosts",
    "Person",
    "ScenarioFacts",
    "Statement",
    "Tells",
    "Track",
    "Verdict",
]
