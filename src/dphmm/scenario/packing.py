"""A scenario as one text that holds all of its files, to be kept or sent."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import re
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from dphmm.chain.markov import MarkovModel
from dphmm.errors import ScenarioError
from dphmm.scenario.models import write_model
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.settings import Settings

__all__ = ["pack", "unpack"]

TOML = "scenario.toml"
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
LARGEST_MODEL = 2**28
"""Bytes of a model file once it is unpacked: a small upload must not become a large array."""


def pack(toml: str, states: str, model: Any, edges: str | None = None) -> tuple[str, str]:
    """The files of a scenario as one text, and the SHA-256 of it.

    `model` is the bytes of a model file, the same in base64, or the rows of a matrix.
    """
    with tempfile.TemporaryDirectory(prefix="dphmm-scenario-") as folder:
        _write(Path(folder) / TOML, toml)
        settings = Settings.read(Path(folder) / TOML)
    if isinstance(model, bytes):
        model = base64.b64encode(model).decode()
    kept = {"base64": model} if isinstance(model, str) else {"transition": model}
    content = {TOML: toml, settings.states: states, settings.model: kept}
    if edges is not None:
        content[settings.policy.edges or "edges.csv"] = edges
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest(), text


def unpack(text: str) -> Scenario:
    """The scenario of a text that `pack` made; it can name no file outside itself."""
    content: dict[str, Any] = json.loads(text)
    with tempfile.TemporaryDirectory(prefix="dphmm-scenario-") as folder:
        for name, held in content.items():
            if not PLAIN.fullmatch(name):
                raise ScenarioError("files must have plain names, got another")
            _write(Path(folder) / name, held)
        path = Path(folder) / TOML
        if not path.exists():
            raise ScenarioError(f"files must hold {TOML}")
        settings = Settings.read(path)
        named = {settings.states, settings.model, settings.policy.edges} - {None}
        if not named <= set(content):
            missing = sorted(str(name) for name in named if name not in content)
            raise ScenarioError(f"files must hold all that {TOML} names, {missing} are missing")
        return Scenario.load(path)


def _write(path: Path, held: Any) -> None:
    if isinstance(held, str):
        try:
            path.write_text(held, encoding="utf-8")
        except UnicodeEncodeError:
            raise ScenarioError(f"{path.name}: file must be text, got other characters") from None
    elif isinstance(held, dict) and isinstance(held.get("base64"), str):
        data = _decoded(path.name, held["base64"])
        path.write_bytes(data)
    elif isinstance(held, dict) and "transition" in held:
        model = MarkovModel(held["transition"])
        write_model(path, model, "given, treated as public")
    else:
        raise ScenarioError(f"{path.name}: file must be text, base64 or a transition matrix")


def _decoded(name: str, text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScenarioError(f"{name}: file must be base64, got other text") from None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except zipfile.BadZipFile:
        return data
    if size > LARGEST_MODEL:
        raise ScenarioError(f"{name}: file must unpack to at most {LARGEST_MODEL} bytes")
    return data
