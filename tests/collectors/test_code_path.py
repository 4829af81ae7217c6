"""Which recorded paths are user code, and how they are written."""

from __future__ import annotations

import pytest

from explorer.collectors.code_path import code_path


@pytest.mark.parametrize(
    ("path", "file", "is_user"),
    [
        ("/home/u/train.py", "/home/u/train.py", True),
        ("D:\\Dev\\model.py", "D:/Dev/model.py", True),
        (
            "D:\\x\\.venv\\Lib\\site-packages\\torch\\nn\\modules\\module.py",
            "torch/nn/modules/module.py",
            False,
        ),
        ("/opt/venv/lib/python3.11/site-packages/mine/net.py", "mine/net.py", False),
        ("/usr/lib/python3/dist-packages/x.py", "x.py", False),
        ("/usr/lib/python3.11/threading.py", "threading.py", False),
        ("C:\\Python311\\Lib\\threading.py", "threading.py", False),
        ("torch/nn/modules/module.py", "torch/nn/modules/module.py", False),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>", False),
        ("??", "??", False),
        ("/build/aten/src/ATen/Dispatch.cpp", "/build/aten/src/ATen/Dispatch.cpp", False),
        ("train.py", "train.py", True),
    ],
)
def test_paths(path, file, is_user):
    found = code_path(path)
    assert (found.file, found.is_user) == (file, is_user)


def test_user_paths_are_relative_to_a_root():
    assert code_path("/home/u/project/train.py", "/home/u/project").file == "train.py"
    assert code_path("/home/u/projects/train.py", "/home/u/project").file == "/home/u/projects/train.py"
