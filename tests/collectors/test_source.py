"""Containers, limits and hostile archives."""

from __future__ import annotations

import gzip
import os
import stat
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from explorer.collectors.input_files import find_inputs
from explorer.collectors.source import Damaged, Limits, Source, open_source
from explorer.model.errors import InputError

TEXT = b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}' * 5000


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("container", "data"),
    [
        ("plain", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:])),
        ("gzip", gzip.compress(TEXT) + b"\0" * 512),
        ("zstd", zstd(TEXT)),
    ],
)
def test_content_is_known_by_its_bytes_not_its_name(container: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace.bin"
    path.write_bytes(data)
    (source,) = open_source(path)
    assert source.container == container
    assert source.head == TEXT[:65536]
    assert b"".join(source.blocks()) == TEXT


@pytest.mark.parametrize("cut", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_cut_file_yields_what_came_before(pack: object, cut: float, tmp_path: Path) -> None:
    noise = os.urandom(400_000).hex().encode()
    data = pack(noise)  # type: ignore[operator]
    path = tmp_path / "trace"
    path.write_bytes(data[: int(len(data) * cut)])
    (source,) = open_source(path)
    got = bytearray()

    def drain() -> None:
        for block in source.blocks(4096):
            got.extend(block)

    with pytest.raises(Damaged):
        drain()
    assert noise.startswith(bytes(got))
    assert len(got) > len(noise) * (cut - 0.25)


def test_zip_members_are_sources(tmp_path: Path) -> None:
    path = tmp_path / "ranks.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run/rank0.json", TEXT)
        archive.writestr("run/rank1.json", TEXT)
    sources = open_source(path)
    assert [s.member for s in sources] == ["run/rank0.json", "run/rank1.json"]
    assert b"".join(sources[1].blocks()) == TEXT


@pytest.mark.parametrize(
    "name", ["../evil.json", "/etc/evil.json", "a/../../evil.json", "C:/evil.json", "..\\evil.json"]
)
def test_zip_paths_that_lead_out_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, TEXT)
    with pytest.raises(InputError, match="leads out of the archive"):
        open_source(path)


def test_bombs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(80):
            file.write(b" " * (1 << 20))
    (source,) = open_source(path)
    with pytest.raises(InputError, match="decompression bomb"):
        for _ in source.blocks():
            pass
    (source,) = open_source(path, Limits(max_ratio=10_000))
    assert sum(map(len, source.blocks())) == 80 << 20
    (source,) = open_source(path, Limits(max_ratio=10_000, max_bytes=1 << 20))
    with pytest.raises(InputError, match="more than 1,048,576 bytes"):
        for _ in source.blocks():
            pass


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(InputError, match="not a regular file"):
        open_source(pipe)
    with pytest.raises(InputError, match="does not exist"):
        open_source(tmp_path / "none")
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="is empty"):
        open_source(tmp_path / "empty")


def test_links_out_of_a_directory_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    (folder / "rank0.json").write_bytes(TEXT)
    (folder / "rank1.json").symlink_to(folder / "rank0.json")
    assert len(find_inputs([folder], Limits()).found) == 2
    (tmp_path / "secret.json").write_bytes(TEXT)
    (folder / "rank2.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(InputError, match="symbolic link that leads out"):
        find_inputs([folder], Limits())


def test_ranks_come_in_natural_order_and_globs_work(tmp_path: Path) -> None:
    for rank in (10, 9, 1):
        (tmp_path / f"rank{rank}.json").write_bytes(TEXT)
    names = ["rank1.json", "rank9.json", "rank10.json"]
    assert [s.name for s in find_inputs([tmp_path], Limits()).found] == names
    assert [s.name for s in find_inputs([str(tmp_path / "rank*.json")], Limits()).named] == names
    odd = tmp_path / "exp[1]"
    odd.mkdir()
    (odd / "a.json").write_bytes(TEXT)
    assert [s.name for s in find_inputs([str(odd / "a.json")], Limits()).named] == ["a.json"]
    with pytest.raises(InputError, match="No file matches"):
        find_inputs([str(tmp_path / "x*.json")], Limits())


def drained(source: Source, damage: str) -> bytes:
    """What a damaged source holds before the damage, which must be the one named."""
    got = bytearray()

    def drain() -> None:
        for block in source.blocks():
            got.extend(block)

    with pytest.raises(Damaged, match=damage):
        drain()
    return bytes(got)


def test_a_wrong_checksum_costs_no_content(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    for size in (1, 1000, len(TEXT)):
        data = bytearray(gzip.compress(TEXT[:size]))
        data[-8] ^= 0xFF
        path.write_bytes(data)
        (source,) = open_source(path)
        assert drained(source, "incorrect data check") == TEXT[:size]


@pytest.mark.parametrize("more", [b"garbage", b"\0" * (3 << 20) + b"x", b"\x1f"])
def test_what_follows_the_end_of_gzip_data_is_said(more: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(gzip.compress(TEXT) + more)
    (source,) = open_source(path)
    assert drained(source, "no gzip data") == TEXT
    path.write_bytes(gzip.compress(TEXT) + b"\0" * (3 << 20) + gzip.compress(TEXT))
    assert b"".join(open_source(path)[0].blocks()) == TEXT + TEXT


def test_a_wrong_checksum_in_a_zip_costs_no_content(tmp_path: Path) -> None:
    path = tmp_path / "ranks.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rank0.json", TEXT)
        checksum = archive.getinfo("rank0.json").CRC.to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(checksum, b"abcd"))
    (source,) = open_source(path)
    assert drained(source, "wrong checksum") == TEXT
