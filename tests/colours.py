"""How different two colours look, also to people who do not see red, green or blue."""

from __future__ import annotations

from collections.abc import Iterator
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

import numpy as np

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
BLIND = {
    "nothing": np.eye(3),
    "red": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "green": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "blue": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = np.array([0.95047, 1.0, 1.08883])


def parse(colours: list[str]) -> np.ndarray:
    """Hexadecimal colours as linear RGB."""
    shown = np.array([[int(one[i : i + 2], 16) / 255 for i in (1, 3, 5)] for one in colours])
    return np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)


def blindnesses(linear: np.ndarray) -> Iterator[list[list[float]]]:
    """The colours in CIELAB as each kind of eye sees them."""
    for matrix in BLIND.values():
        scaled = np.clip(linear @ matrix.T, 0, 1) @ XYZ.T / WHITE
        bent = np.where(scaled > 216 / 24389, np.cbrt(scaled), (24389 / 27 * scaled + 16) / 116)
        x, y, z = bent.T
        yield np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1).tolist()


def difference(first: list[float], second: list[float]) -> float:
    """CIEDE2000 between two colours in CIELAB (Sharma, Wu and Dalal, 2005)."""
    (l1, a1, b1), (l2, a2, b2) = first, second
    chroma = (hypot(a1, b1) + hypot(a2, b2)) / 2
    grey = 1.5 - 0.5 * sqrt(chroma**7 / (chroma**7 + 25**7))
    c1, c2 = hypot(grey * a1, b1), hypot(grey * a2, b2)
    h1, h2 = (degrees(atan2(b, grey * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    hue = 2 * sqrt(c1 * c2) * sin(radians(turn / 2))
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    middle = h1 + h2 if not c1 * c2 else (h1 + turn / 2) % 360
    shape = (
        1
        - 0.17 * cos(radians(middle - 30))
        + 0.24 * cos(radians(2 * middle))
        + 0.32 * cos(radians(3 * middle + 6))
        - 0.20 * cos(radians(4 * middle - 63))
    )
    by_light = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / sqrt(20 + (light - 50) ** 2))
    by_chroma = (c2 - c1) / (1 + 0.045 * chroma)
    by_hue = hue / (1 + 0.015 * chroma * shape)
    bend = -2 * sqrt(chroma**7 / (chroma**7 + 25**7))
    bend *= sin(radians(60 * exp(-(((middle - 275) / 25) ** 2))))
    return sqrt(by_light**2 + by_chroma**2 + by_hue**2 + bend * by_chroma * by_hue)
