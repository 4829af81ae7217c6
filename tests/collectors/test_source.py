"""Containers, limits and hostile archives."""

from __future__ import annotations

import gzip
import io
import os
import random
import stat
import warnings
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


def drained_of(path: Path) -> list[tuple[str, bytes, bool]]:
    """Every source in a file: name, what can be read, whether it is damaged."""
    found = []
    for source in open_source(path):
        got, damaged = bytearray(), False
        try:
            for block in source.blocks(1 << 14):
                got.extend(block)
        except Damaged:
            damaged = True
        found.append((source.name, bytes(got), damaged))
    return found


NOISE = random.Random(5).randbytes(300_000).hex().encode()


def test_a_zstd_frame_with_a_wrong_checksum_costs_no_content(tmp_path: Path) -> None:
    path = tmp_path / "t.zst"
    framed = bytearray.fromhex("28b52ffd248c750000386e6575726f6e2001000251c508522cf25b")
    path.write_bytes(framed)
    assert drained_of(path) == [("t.zst", b"neuron " * 20, False)]
    framed[-1] ^= 0xFF
    path.write_bytes(framed)
    assert drained_of(path) == [("t.zst", b"neuron " * 20, True)]
    path.write_bytes(zstd(TEXT) + framed)
    assert drained_of(path) == [("t.zst", TEXT + b"neuron " * 20, True)]


@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_corrupt_zstd_block_costs_what_follows_only(number: int, tmp_path: Path) -> None:
    data = bytearray(zstd(NOISE))
    place = 6
    for _ in range(number):
        place += 3 + (int.from_bytes(data[place : place + 3], "little") >> 3)
    data[place] |= 6  # a kind of block that does not exist
    path = tmp_path / "t.zst"
    path.write_bytes(data)
    ((_, got, damaged),) = drained_of(path)
    assert damaged
    assert got == NOISE[: number * (128 << 10)]


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_corrupt_zip_member_costs_what_follows_in_it_only(
    place: float, method: int, tmp_path: Path
) -> None:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.json", NOISE)
        archive.writestr("b.json", TEXT)
        size = archive.getinfo("a.json").compress_size
    data = bytearray(path.read_bytes())
    hit = int(size * place)
    data[hit : hit + 200] = b"\xff" * 200
    path.write_bytes(data)
    (name, got, damaged), second = drained_of(path)
    assert (name, damaged) == ("a.json", True)
    good = int(len(NOISE) * place) - 2000
    assert got[:good] == NOISE[:good]
    assert second == ("b.json", TEXT, False)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_zip_without_its_directory_gives_its_files(streamed: bool, tmp_path: Path) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return not streamed

        def seek(self, *args: int) -> int:
            if streamed:
                raise io.UnsupportedOperation
            return super().seek(*args)

        def tell(self) -> int:
            if streamed:
                raise io.UnsupportedOperation
            return super().tell()

    file = Pipe()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a.json", "b.json", "c.json"):
            archive.writestr(name, TEXT + name.encode())
    data = file.getvalue()
    path = tmp_path / "t.zip"
    path.write_bytes(data[: data.index(b"PK\x01\x02")])
    found = drained_of(path)
    assert [each[:2] for each in found] == [(n, TEXT + n.encode()) for n in ("a.json", "b.json", "c.json")]
    assert [each[2] for each in found] == [False, False, True]
    path.write_bytes(data[: data.index(b"c.json") + 60])
    found = drained_of(path)
    assert [each[0] for each in found] == ["a.json", "b.json", "c.json"]
    assert found[2][2]
    assert TEXT.startswith(found[2][1])


def test_two_files_of_one_name_are_two_sources(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("a.json", TEXT)
        archive.writestr("a.json", TEXT + b"2")
    assert drained_of(path) == [("a.json", TEXT, False), ("a.json#2", TEXT + b"2", False)]


def test_compressed_files_in_a_zip_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json.gz", gzip.compress(TEXT))
        archive.writestr("b.json.zst", zstd(TEXT))
        archive.writestr("c.json.gz", gzip.compress(TEXT)[:-300])
    (first, second, third) = drained_of(path)
    assert first == ("a.json.gz", TEXT, False)
    assert second == ("b.json.zst", TEXT, False)
    assert third[2]
    assert TEXT.startswith(third[1])


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    info = zipfile.ZipInfo("a.json")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(InputError, match="symbolic link"):
        open_source(path)


def test_gzip_members_up_to_the_damaged_one(tmp_path: Path) -> None:
    path = tmp_path / "t.gz"
    first, second = gzip.compress(TEXT), bytearray(gzip.compress(NOISE))
    second[len(second) // 2 : len(second) // 2 + 100] = b"\xff" * 100
    path.write_bytes(first + bytes(second) + first)
    ((_, got, damaged),) = drained_of(path)
    assert damaged
    assert got.startswith(TEXT + NOISE[: len(NOISE) // 2 - 4000])
    for cut in range(1, 9):
        path.write_bytes(first + first[:-cut])
        assert drained_of(path) == [("t.gz", TEXT + TEXT, True)]
