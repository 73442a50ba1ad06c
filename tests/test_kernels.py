"""Kernels: the same bits compiled and plain, little to compile, and nothing for small worlds."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest
from numba.core import caching
from scipy import sparse

from dphmm import (
    Batch,
    MarkovModel,
    Mechanism,
    Plan,
    PolicyGraph,
    Query,
    SeededRandomness,
    SensitivityHull,
    Stream,
    degree_of_protection,
    kernels,
    protect,
    sensitivity_hull,
)
from dphmm.kernels import compiling
from dphmm.kernels.compiling import KEPT, ONCE, TOGETHER, Kernel, kernel
from dphmm.noise.cones import fan_of

SOURCE = Path(__file__).parent.parent / "src"


def every_kernel() -> Iterator[Kernel]:
    for module in iter_modules(kernels.__path__):
        for value in vars(getattr(kernels, module.name)).values():
            if isinstance(value, Kernel) and value.py_func.__module__.endswith(f".{module.name}"):
                yield value


def name_of(one: Kernel) -> str:
    return f"{one.py_func.__module__.rpartition('.')[2]}.{one.py_func.__name__}"


# The same bits


def stream(axes: int, mechanism: str, epsilon: str, seed: int) -> tuple[MarkovModel, Plan, Stream]:
    side = {1: 12, 2: 4, 3: 2}[axes]
    places = np.stack(np.meshgrid(*[np.arange(side)] * axes), axis=-1).reshape(-1, axes)
    query = Query(places * 1.1 + 0.3 * places[:, ::-1] ** 2, step="0.05")
    near = np.abs(places[:, None] - places[None]).sum(axis=2) <= 1
    model = MarkovModel(near / near.sum(axis=1, keepdims=True))
    plan = Plan(PolicyGraph.within_distance(query, 2), query, mechanism=mechanism)
    randomness = SeededRandomness(np.random.default_rng(seed))
    made = Stream(model, plan, epsilon=epsilon, start=0, randomness=randomness, estimate="median")
    return model, plan, made


def releases() -> None:
    """Releases of all kinds in small worlds, one at a time and together."""
    for axes in (1, 2, 3):
        for mechanism, epsilon in (("knorm", "1"), ("staircase", "1.5"), ("staircase", "6")):
            model, plan, one = stream(axes, mechanism, epsilon, 1)
            late = one.estimates(lag=1)
            for state in (0, 1, 1, 0):
                one.release(state)
                late.ready()
            one.smoothed()
            batch = Batch(
                model, plan, epsilon=epsilon, people=["a", "b", "c"], start=0,
                randomness=SeededRandomness(np.random.default_rng(2)), estimate="median", threads=1,
            )  # fmt: skip
            for _ in range(3):
                batch.release([0, 0, 1])
            plan.query.nearest_states([0, 1], [2, 3])


def far_answers() -> None:
    """Answers so unlikely that beliefs need wide numbers."""
    line = MarkovModel([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    plan = Plan(PolicyGraph(3, [(0, 1), (1, 2)]), Query([[0.0], [1.0], [2.0]]))
    one = Stream(
        line, plan, epsilon=400, start=0, randomness=SeededRandomness(np.random.default_rng(3))
    )
    for state in (1, 2, 2, 1, 0):
        one.release(state)
        one.skip(1)
    one.smoothed()


def protections() -> None:
    """Bodies, degrees of protection and repairs, of categories too."""
    rng = np.random.default_rng(5)
    for axes in (1, 2, 3):
        query = Query(rng.integers(-9, 9, (9, axes)))
        categories = PolicyGraph.by_category([0, 0, 0, 1, 1, 1, 1, 2, 3])
        for method in ("nearest", "min_error", "optimal"):
            protect(query, categories, method=method)
        degree_of_protection(query, categories)
        protect(query, PolicyGraph(9, [(0, 1)]))
        pairs = np.repeat(rng.integers(-9, 9, (2, axes)), 2, axis=0) * 9
        pairs[:, 0] += [0, 1, 0, 1]
        protect(Query(pairs), PolicyGraph(4, [(0, 1), (2, 3)]))
        hull = sensitivity_hull(query, categories)
        hull.lattice_norms(query.points)
        hull.lattice_layers(query.points, "0.3")
        hull.lattice_contains(query.points)
        assert Mechanism(query, hull, 1).mean_squared_error > 0


def recorded(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[Kernel, Any]]]:
    """The arguments of every kernel that may be plain, with nothing compiled."""
    calls: dict[str, list[tuple[Kernel, Any]]] = {}

    def record(self: Kernel, *args: Any) -> Any:
        if self.steps is None:
            return self.compiled(*args)
        calls.setdefault(name_of(self), []).append((self, copy.deepcopy(args)))
        return self.plain(*args)

    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "__call__", record)
        releases()
        far_answers()
        protections()
    return calls


def bits(value: Any) -> Any:
    if isinstance(value, tuple):
        return [bits(one) for one in value]
    return np.shape(value), np.asarray(value).tobytes()


def test_plain_and_compiled_kernels_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(monkeypatch)
    cells = calls["cells.moments"]
    calls["cells.binned"] = [(kernels.cells.binned, (*args, 3)) for _, args in cells]
    assert set(calls) == {name_of(one) for one in every_kernel() if one.steps is not None}
    for name, made in calls.items():
        for one, args in made[:: max(1, len(made) // 20)]:
            plain, compiled = copy.deepcopy(args), copy.deepcopy(args)
            assert bits(one.plain(*plain)) == bits(one.compiled(*compiled)), name
            assert bits(plain) == bits(compiled), name


def test_squares_have_the_same_bits_too() -> None:
    # One square in a thousand is another float as NumPy's power than as a product, and then
    # mostly the sum is the same: these numbers are among those where it was not.
    for seed in (590, 867):
        rng = np.random.default_rng(seed)
        values, weights = rng.normal(size=(4, 3)), rng.dirichlet(np.ones(4))
        plain, compiled = np.empty(3), np.empty(3)
        kernels.estimate.median.plain(values, weights, plain)
        kernels.estimate.median.compiled(values, weights, compiled)
        assert bits(plain) == bits(compiled)
    places, sums = np.random.default_rng(0).normal(size=(2, 20000)), kernels.planar._edge_moment
    for x, y in places.T:
        assert sums(x, y, x, y) == sums(float(x), float(y), float(x), float(y))
        assert sums(x, 0.0, 0.0, 0.0) == 2 * x * x


def test_cells_of_the_plane_are_summed_as_those_of_space_bit_for_bit() -> None:
    rng = np.random.default_rng(4)
    for gamma in (None, Fraction(3, 10)):
        corners = rng.integers(-40, 40, (7, 2))
        body = SensitivityHull.from_lattice(np.concatenate([corners, -corners]), 1)
        fan = fan_of(body, gamma)
        assert {True, False} == {bool(one) for i in range(len(fan.cones)) for one in fan.cell(i)[3]}
        for number in range(len(fan.cones)):
            diagonal, inverse, volume, strict, free = fan.cell(number)
            # A third axis on which every point is at zero adds nothing, and is no plane.
            beside = (
                np.append(diagonal, 1),
                np.pad(inverse, (0, 1)),
                volume,
                np.append(strict, False),
            )
            weight, first, pairs = kernels.cells.moments(*beside, free, 0.7)
            sums = weight, first[:2], pairs[:2, :2]
            assert bits(kernels.cells.moments(*fan.cell(number), 0.7)) == bits(sums)
            assert bits(kernels.cells.moments.plain(*fan.cell(number), 0.7)) == bits(sums)


@pytest.mark.parametrize("seed", range(40))
def test_a_row_whose_terms_lie_at_several_levels_is_summed_as_fractions_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = 12
    matrix = sparse.random_array((states, states), density=0.5, rng=rng, format="csr")
    data = matrix.data * np.where(rng.random(matrix.nnz) < 0.3, 2.0**-400, 1.0)
    # At the ends of the range a term counts beside one of the level above it, or does not.
    wide = np.array([2.0 ** rng.choice([-256, -250, 0, 255], states), rng.integers(0, 4, states)])
    wide[:, rng.random(states) < rng.choice([0, 0.5])] = [[0], [np.inf]]
    jumps = np.where(rng.random(states) < 0.3, 2.0 ** rng.choice([-1, -400, -900], states), 0)
    indptr, indices = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    wide.setflags(write=False)
    found, plainly = np.empty((2, states)), np.empty((2, states))
    kernels.chain.step.compiled(indptr, indices, data, jumps, wide, found)
    kernels.chain.step.plain(indptr, indices, data, jumps, wide, plainly)
    assert bits(found) == bits(plainly)
    exact = [exactly(*one) for one in wide.T]
    for row, (scaled, level) in enumerate(found.T):
        terms = range(indptr[row], indptr[row + 1])
        total = sum((Fraction(data[i]) * exact[indices[i]] for i in terms), Fraction(jumps[row]))
        assert (level == np.inf) == (total == 0)
        assert total == 0 or scaled >= kernels.chain.LOW
        assert abs(exactly(scaled, level) - total) <= Fraction(1, 10**12) * total


def exactly(scaled: float, level: float) -> Fraction:
    """What a wide number stands for."""
    return Fraction(0) if level == np.inf else Fraction(scaled) / 2 ** (512 * int(level))


def double(numbers: np.ndarray) -> float:
    """A function that is no kernel yet."""
    total = 0.0
    for i in range(len(numbers)):
        total += 2 * numbers[i]
    return total


# When a kernel is compiled


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled yet, and nothing can be kept."""
    monkeypatch.delenv(kernels.VARIABLE, raising=False)
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])


@pytest.mark.usefixtures("nothing_kept")
def test_a_kernel_is_compiled_after_many_small_calls() -> None:
    one = Kernel(double, lambda numbers: ONCE)
    for _ in range(TOGETHER // ONCE):
        assert one(np.ones(3)) == 6.0
        assert one.signatures == []
    assert one(np.ones(3)) == 6.0
    assert len(one.signatures) == 1


@pytest.mark.usefixtures("nothing_kept")
def test_a_kernel_that_is_on_disk_is_loaded_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_is_kept", lambda compiled: True)
    one = Kernel(double, lambda numbers: KEPT)
    one(np.ones(3))
    assert one.signatures == []
    one(np.ones(3))
    assert len(one.signatures) == 1


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("steps", [None, lambda numbers: ONCE + 1])
def test_a_large_call_is_compiled_at_once(steps: Any) -> None:
    one = Kernel(double, steps)
    one(np.ones(3))
    assert len(one.signatures) == 1


@pytest.mark.usefixtures("nothing_kept")
def test_a_server_compiles_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.VARIABLE, "")
    kernels.compile_at_once()
    one = Kernel(double, lambda numbers: 1)
    one(np.ones(3))
    assert len(one.signatures) == 1


@pytest.mark.usefixtures("nothing_kept")
def test_where_nothing_can_be_written_kernels_are_compiled_all_the_same() -> None:
    one = kernel()(double)
    assert one(np.ones(3)) == 6.0


def test_a_kernel_is_pickled_by_its_name() -> None:
    settle = kernels.release.settle
    assert pickle.loads(pickle.dumps(settle)) is settle
    assert copy.deepcopy(settle) is settle


# What is compiled

FIRST_RELEASES = """
import numpy as np
from dphmm import MarkovModel, Plan, PolicyGraph, Query, Stream
from tests.test_kernels import every_kernel, name_of
places = np.stack(np.meshgrid(np.arange(10), np.arange(10)), axis=-1).reshape(-1, 2)
near = np.abs(places[:, None] - places[None]).sum(axis=2) <= 1
query = Query(places, step="0.25")
model = MarkovModel(near / near.sum(axis=1, keepdims=True))
for mechanism in ("knorm", "staircase"):
    plan = Plan(PolicyGraph.within_distance(query, 2), query, mechanism=mechanism)
    Stream(model, plan, epsilon=1, start=0).release(0)
print(*(f"{name_of(one)}={len(one.signatures)}" for one in every_kernel() if one.signatures))
"""


def compiled_by_first_releases(folder: Path, **environment: str) -> dict[str, int]:
    """How many signatures of each kernel a process compiles, or loads from a folder."""
    given = {name: value for name, value in os.environ.items() if name != kernels.VARIABLE}
    path = os.pathsep.join([str(SOURCE), str(SOURCE.parent)])
    given |= {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder), **environment}
    command = [sys.executable, "-c", FIRST_RELEASES]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=given)
    pairs = (word.split("=") for word in done.stdout.split())
    return {name: int(count) for name, count in pairs}


def test_the_first_release_ever_of_a_small_world_compiles_nothing(tmp_path: Path) -> None:
    assert compiled_by_first_releases(tmp_path) == {}


def test_a_release_compiles_few_kernels_and_each_of_them_once(tmp_path: Path) -> None:
    found = compiled_by_first_releases(tmp_path, **{kernels.VARIABLE: "always"})
    assert {name for name, count in found.items() if count > 1} == set()
    assert len(found) <= 24, found
    kept = {path.name.partition("-")[0].rpartition(".")[2] for path in tmp_path.rglob("*.nbi")}
    assert {"exponents", "settle", "draw_many", "convex_hull"} <= kept, "for the next process"


def test_a_changed_kernel_is_compiled_again_in_those_that_call_it(tmp_path: Path) -> None:
    """Numba looks at the file of the caller alone, and went on with the machine code before."""
    shutil.copytree(
        SOURCE / "dphmm", tmp_path / "dphmm", ignore=shutil.ignore_patterns("__pycache__", "static")
    )
    ask = (
        "import numpy as np; from dphmm.kernels.cells import moments; print(moments("
        "np.array([7, 1]), np.eye(2, dtype=int), 7, np.array([False, False]), 2, 1.0)[0])"
    )

    def asked() -> str:
        paths = {"PYTHONPATH": str(tmp_path), "DPHMM_COMPILE": "always"}
        run = [sys.executable, "-c", ask]
        return subprocess.check_output(run, env={**os.environ, **paths}, text=True)

    before = asked()
    assert asked() == before
    gauge = tmp_path / "dphmm" / "kernels" / "gauge.py"
    changed = gauge.read_text().replace("def layer(", "def was_layer(")
    gauge.write_text(f"{changed}\n\n@kernel()\ndef layer(height, free, offset):\n    return 3\n")
    assert asked() != before
