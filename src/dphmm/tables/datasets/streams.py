"""The bytes of files, plain, gzipped or in a zip, up to the very byte where a fault begins.

The standard readers throw away what they had already read when a file turns out damaged. Here
every byte before the fault is handed on first, and then the fault is raised.
"""

from __future__ import annotations

import codecs
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dphmm.errors import DataError

__all__: list[str] = []

_INPUT = 1 << 18
_OUTPUT = 1 << 25
_GZIP = 31
_RAW_DEFLATE = -15

Chunks: TypeAlias = Iterator[tuple[bytes, int]]
"""Some bytes of content, and how many bytes of the file they took."""

DAMAGE = (EOFError, OSError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class Source:
    """A file, or a member of an archive: its name for reports, its size, its content."""

    name: str
    size: int
    chunks: Callable[[], Chunks]
    person: str | None = None


def existing(path: Path) -> Path:
    """The path, if there is such a file or folder."""
    if not path.exists():
        raise DataError(f"path must name a file or folder that exists, got {str(path)!r}")
    return path


def file_source(path: Path, person: str | None = None, name: str | None = None) -> Source:
    """A plain or gzipped file, told apart by its first two bytes."""

    def chunks() -> Chunks:
        with path.open("rb") as stream:
            zipped = stream.read(2) == b"\x1f\x8b"
        whole = _slices(path, 0, None)
        return _inflate(whole, _GZIP) if zipped else whole

    return Source(name or path.name, existing(path).stat().st_size, chunks, person)


def member_source(path: Path, info: zipfile.ZipInfo, person: str) -> Source:
    """A member of a zip archive."""

    def chunks() -> Chunks:
        if info.flag_bits & 1 or info.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            with zipfile.ZipFile(path) as archive:
                yield archive.read(info), info.compress_size
            return
        with path.open("rb") as stream:
            stream.seek(info.header_offset)
            header = stream.read(30)
        if len(header) < 30 or not header.startswith(b"PK\x03\x04"):
            raise zipfile.BadZipFile("no member here")
        start = info.header_offset + 30 + sum(struct.unpack("<HH", header[26:30]))
        content = _slices(path, start, info.compress_size)
        if info.compress_type == zipfile.ZIP_DEFLATED:
            content = _inflate(content, _RAW_DEFLATE)
        check = 0
        for data, taken in content:
            check = zlib.crc32(data, check)
            yield data, taken
        if check != info.CRC:
            raise zipfile.BadZipFile("checksum")

    return Source(info.filename, info.compress_size, chunks, person)


def _slices(path: Path, start: int, size: int | None) -> Chunks:
    with path.open("rb") as stream:
        stream.seek(start)
        while size is None or size > 0:
            data = stream.read(_INPUT if size is None else min(_INPUT, size))
            if not data:
                break
            yield data, len(data)
            size = None if size is None else size - len(data)


def _inflate(chunks: Chunks, kind: int) -> Chunks:
    decoder = zlib.decompressobj(kind)
    for packed, taken in chunks:
        data, decoder = _unpack(packed, decoder, kind)
        if isinstance(data, bytes):
            yield data, taken
            continue
        before, fault = data
        yield before, taken
        raise fault
    if not decoder.eof:
        raise EOFError("the compressed data end early")


def _unpack(
    packed: bytes, decoder: zlib._Decompress, kind: int
) -> tuple[bytes | tuple[bytes, zlib.error], zlib._Decompress]:
    """What some compressed bytes hold, and on a fault what they held before it."""
    parts: list[bytes] = []
    while packed:
        if decoder.eof:
            # A gzip file may be several after one another, and end in padding.
            packed = packed.lstrip(b"\0")
            if not packed or kind != _GZIP:
                break
            decoder = zlib.decompressobj(kind)
        saved = decoder.copy()
        try:
            parts.append(decoder.decompress(packed))
        except zlib.error as fault:
            for index in range(len(packed)):
                try:
                    parts.append(saved.decompress(packed[index : index + 1]))
                except zlib.error:
                    break
            return (b"".join(parts), fault), saved
        packed = decoder.unused_data
    return b"".join(parts), decoder


def _wide(data: bytes) -> str | None:
    """The encoding of text whose letters have two or four bytes each, from its first ones."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    start = data[: _INPUT >> 10]
    start = start[: len(start) // 2 * 2]
    # Headers and numbers are ASCII, of which every other byte is then zero.
    for encoding, zeros, letters in (
        ("utf-16-le", start[1::2], start[::2]),
        ("utf-16-be", start[::2], start[1::2]),
    ):
        if len(start) > 8 and not any(zeros) and all(letters):
            return encoding
    return None


def _line_feeds(data: bytes, last: bool) -> tuple[bytes, bytes]:
    """The bytes with one kind of line end, and a final return whose line feed may come next."""
    held = b"" if last or not data.endswith(b"\r") else b"\r"
    data = data[: len(data) - len(held)]
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), held


def text_chunks(source: Source) -> Chunks:
    """The content as UTF-8 with line feeds, whatever it was written with, in larger chunks."""
    decoder: codecs.IncrementalDecoder | None = None
    held = b""
    parts: list[bytes] = []
    size = taken = 0
    first = True
    chunks = source.chunks()
    fault: Exception | None = None
    while True:
        try:
            data, consumed = next(chunks, (b"", -1))
        except DAMAGE as problem:
            fault, data, consumed = problem, b"", -1
        if first and data:
            if encoding := _wide(data):
                decoder = codecs.getincrementaldecoder(encoding)("replace")
            data = data.removeprefix(codecs.BOM_UTF8)
            first = False
        if decoder is not None:
            data = decoder.decode(data).encode()
        if b"\r" in data or held:
            data, held = _line_feeds(held + data, last=consumed < 0)
        parts.append(data)
        size += len(data)
        taken += max(consumed, 0)
        if consumed < 0 or size >= _OUTPUT:
            yield b"".join(parts), taken
            parts, size, taken = [], 0, 0
        if fault is not None:
            raise fault
        if consumed < 0:
            return
