"""Lets the tests of this folder import what those of tests/python share, and have the fixtures of
reports."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
pytest.register_assert_rewrite("reports")

from reports import dense, opened, page, parts, plain, recorded  # noqa: E402, F401
