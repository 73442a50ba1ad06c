"""The reference pages of the documentation, made from the code while the site is built.

`docs/conf.py` calls `write_pages` before Sphinx reads anything, and `write_texts` at the end.
Names come from `dphmm.__all__`, options from the command line's own descriptions, routes from
the service's OpenAPI, so a page cannot lag behind what it describes. The pages stand in
`docs/reference/`, which git ignores.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

SENTENCE = "Private release of what a Markov chain is doing, under a policy drawn as a graph"

SUBJECTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "scenario": (
        "Scenarios",
        "Everything public about a use, and what one asks of it.",
        ("Scenario", "States", "Policy", "Schedule", "Limit", "Clock", "Calendar", "Check"),
    ),
    "release": (
        "Releases",
        "Private answers, one person after the other or many at once, and where they are kept.",
        (
            *("Stream", "Release", "Batch", "BatchRelease", "Plan", "Standing", "Estimates"),
            *("MemoryBook", "Journal", "Store"),
        ),
    ),
    "models": (
        "Models",
        "How states move, what is believed about them, and how a model is learned.",
        (
            *("Chain", "MarkovModel", "TimeVaryingModel", "MemoryModel", "MomentumModel"),
            *("SecondOrderModel", "Belief", "FixedLag", "learn_private", "Judgement"),
        ),
    ),
    "policy": (
        "Policies",
        "Who must look like whom, who is exposed, and how a graph is repaired.",
        (
            *("PolicyGraph", "Query", "SensitivityHull", "sensitivity_hull"),
            *("degree_of_protection", "exposed", "unprotected", "is_protectable", "protect"),
            *("added_edges", "enlarge"),
        ),
    ),
    "noise": (
        "Noise",
        "Mechanisms, their randomness, and the least error of any mechanism.",
        (
            *("Mechanism", "best_gamma", "least_error", "Randomness", "SecureRandomness"),
            *("KeyedRandomness", "SeededRandomness", "reference_knorm"),
        ),
    ),
    "cost": (
        "Cost",
        "Budgets, statements, and what releases tell in all.",
        (
            *("Ledger", "Entry", "Charge", "Spending", "History", "PrivacyStatement"),
            *("privacy_statement", "constrained_epsilon", "compose", "event_epsilon"),
            *("window_epsilon", "sequence_epsilon", "sequence_bracket", "paper_sequence_epsilon"),
            *("worst_pair", "PrivacyLoss", "privacy_loss", "Leakage", "temporal_leakage"),
            *("realised_leakage", "realised_odds", "Whereabouts", "whereabouts", "LocalRelease"),
        ),
    ),
    "adversaries": (
        "Adversaries and audit",
        "Stronger observers, Blowfish policies, attacks on one's own releases, black-box tests.",
        (
            *("attack", "guarantee_against", "largest_gains", "private_identification_rate"),
            *("private_score", "suspect_probabilities", "Blowfish", "Secret", "counting_query"),
            *("audit_sampler", "compare"),
        ),
    ),
    "design": (
        "Design",
        "The radius, epsilon, schedule or budget that meets a wish.",
        ("Design", "BudgetDesign", "find_radius", "find_epsilon", "find_schedule", "find_budget"),
    ),
    "client": (
        "Client",
        "Releases from a service, over HTTP.",
        ("Client", "AsyncClient"),
    ),
    "data": (
        "Data",
        "Data sets, real and made up.",
        ("datasets",),
    ),
    "errors": (
        "Errors and warnings",
        "What can be caught; every one is a `DphmmError`.",
        (
            *("DphmmError", "ArgumentError", "BudgetError", "DataError", "ExposureError"),
            *("GeometryError", "MissingExtraError", "ScenarioError", "ServiceError"),
            *("StoreError", "TooLargeError", "CollapsedAnswersWarning", "UnknownLawWarning"),
        ),
    ),
}
"""For each page of Python names: its title, its sentence, and the names in reading order."""


def pages() -> Iterator[tuple[str, str]]:
    """Every reference page: its path below docs/ and its Markdown."""
    yield "reference/index.md", index_page()
    for page, (title, sentence, names) in SUBJECTS.items():
        yield f"reference/{page}.md", python_page(title, sentence, names)
    yield "reference/commands.md", command_page()
    yield "reference/http.md", http_page()


def index_page() -> str:
    """The list of every public name, command and route, each with its first sentence."""
    lines = ["# Reference", "", "Every name that `import dphmm` gives, by subject.", ""]
    for page, (title, sentence, names) in SUBJECTS.items():
        linked = ", ".join(f"[`{name}`]({page}.md#{name.lower()})" for name in names)
        lines += [f"**[{title}]({page}.md)**: {sentence[0].lower()}{sentence[1:]}", "", linked, ""]
    lines += ["In signatures, `Exact` is an int, a decimal text, a `Fraction` or a float, which "]
    lines += [
        "means its shortest decimal; `Mask`, `IntArray` and `FloatArray` are NumPy arrays.",
        "",
    ]
    lines += ["Beside Python: [every command and option](commands.md), "]
    lines += ["[every key of a scenario file](../scenario.md), [every HTTP route](http.md).", ""]
    lines += ["```{toctree}", ":hidden:", "", *SUBJECTS, "commands", "http", "```", ""]
    return "\n".join(lines)


def python_page(title: str, sentence: str, names: tuple[str, ...]) -> str:
    """A page that Sphinx fills from the docstrings of some names."""
    import dphmm

    lines = [f"# {title}", "", sentence, ""]
    for name in names:
        kind = getattr(dphmm, name)
        what = "class" if isinstance(kind, type) else "function"
        if isinstance(kind, ModuleType):
            what = "module"
        directive = f"auto{'exception' if _is_exception(kind) else what}"
        options = [":members:"] if what != "function" else []
        lines += [f"## {name}", "", "```{eval-rst}", f".. {directive}:: dphmm.{name}"]
        lines += [*(f"   {option}" for option in options), "```", ""]
    return "\n".join(lines)


def _is_exception(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


def command_page() -> str:
    """Every command with its usage, its words, its example and its options."""
    from click import Context

    from dphmm.cli.program import COMMANDS, program

    lines = ["# Commands and options", ""]
    lines += ["What each is for, with examples of use: [commands](../commands.md).", ""]
    root = Context(program, info_name="dphmm")
    for name in COMMANDS:
        command = program.get_command(root, name)
        assert command is not None, name
        lines += _command(Context(command, info_name=f"dphmm {name}"))
    return "\n".join(lines)


def _command(context: Any, level: int = 2) -> Iterator[str]:
    command = context.command
    yield f"{'#' * level} {context.info_name}"
    yield ""
    words, _, example = (command.help or "").partition("\b\n")
    yield " ".join(words.split()).removesuffix("Example:").strip()
    yield ""
    if example.strip():
        yield from ("```console", *(f"$ {line.strip()}" for line in _commands(example)), "```", "")
    options = [option for option in command.params if option.param_type_name == "option"]
    if options:
        yield from ("| option | meaning |", "|---|---|")
        for option in options:
            record = option.get_help_record(context)
            if record is not None:
                names, meaning = (" ".join(part.split()).replace("|", "\\|") for part in record)
                yield f"| `{names}` | {meaning} |"
        yield ""
    for name in getattr(command, "commands", {}):
        part = command.commands[name]
        yield from _command(type(context)(part, info_name=f"{context.info_name} {name}"), level + 1)


def _commands(example: str) -> Iterator[str]:
    for line in example.splitlines():
        if line.strip().startswith("dphmm "):
            yield line


def http_page() -> str:
    """Every route of the service, with what it takes and answers, from its OpenAPI."""
    api = openapi()
    lines = ["# HTTP routes", "", api["info"]["description"], ""]
    lines += ["How to run it: [the service](../service.md). A server shows this page, too, "]
    lines += ["at `/docs`, and the machine's form at `/openapi.json`.", ""]
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            lines += [f"## {method.upper()} {path}", ""]
            lines += [operation.get("description", operation.get("summary", "")), ""]
            rows = [
                f"| `{given['name']}` | {given['in']} | {given.get('description', '')} |"
                for given in operation.get("parameters", ())
            ]
            if rows:
                lines += ["| parameter | where | meaning |", "|---|---|---|", *rows, ""]
            lines += _bodies(api, operation)
    return "\n".join(lines)


def _bodies(api: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
    said = {"takes": operation.get("requestBody", {})}
    good = [status for status in operation["responses"] if status.startswith("2")]
    said |= {f"answers {status}": operation["responses"][status] for status in good}
    for verb, body in said.items():
        for kind, content in body.get("content", {}).items():
            names = sorted(_references(content.get("schema", {})))
            shapes = ", ".join(f"`{name}`" for name in names)
            yield f"It {verb}: `{kind}`{f' ({shapes})' if shapes else ''}."
            yield ""
            for name in names if verb == "takes" else ():
                yield from _fields(api["components"]["schemas"][name])


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    if not schema.get("properties"):
        return
    needed = schema.get("required", ())
    yield from ("| field | needed | meaning |", "|---|---|---|")
    for name, field in schema["properties"].items():
        meaning = " ".join(str(field.get("description", "")).split()).replace("|", "\\|")
        yield f"| `{name}` | {'yes' if name in needed else ''} | {meaning} |"
    yield ""


def _references(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        found = {schema["$ref"].rpartition("/")[2]} if "$ref" in schema else set()
        return found.union(*(_references(part) for part in schema.values()))
    if isinstance(schema, list):
        return set().union(*(_references(part) for part in schema))
    return set()


def openapi() -> dict[str, Any]:
    """The description of the service's routes, from an application over an empty store."""
    from dphmm import Store
    from dphmm.service.app import create_app

    with TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "empty.db")
        app: Any = create_app(store)
        while not hasattr(app, "openapi"):
            app = app.app
        description: dict[str, Any] = app.openapi()
        store.close()
    return description


# Writing


def write_pages(docs: Path) -> None:
    """Write the reference pages below a folder of documentation, and remove others there."""
    made = {docs / name: text for name, text in pages()}
    (docs / "reference").mkdir(exist_ok=True)
    for stale in set((docs / "reference").glob("*.md")) - set(made):
        stale.unlink()
    for path, text in made.items():
        # Left alone where nothing changed, so that Sphinx reads only what is new.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def write_texts(docs: Path, site: Path) -> None:
    """Write what programs that read prose want: a list of the pages, and all of them as text."""
    pages = [*sorted(docs.glob("*.md")), *sorted((docs / "howto").glob("*.md"))]
    names = [str(page.relative_to(docs).with_suffix("")) for page in pages]
    texts = [(n, page.read_text(encoding="utf-8")) for n, page in zip(names, pages, strict=True)]
    found = sorted((docs / "notebooks").glob("*.ipynb"))
    texts += [(f"notebooks/{page.stem}", notebook_text(page)) for page in found]
    lines = ["# dphmm", "", f"> {SENTENCE}", ""]
    lines += [f"- [{_title(text)}]({name}.html)" for name, text in texts]
    lines += ["- [Everything as text](llms-full.txt)", ""]
    (site / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(text for _, text in texts), encoding="utf-8")


def notebook_text(path: Path) -> str:
    """The words and the code of a notebook, as Markdown."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(parts)


def _title(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("# ")).removeprefix("# ")
