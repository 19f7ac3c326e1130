"""The programs that the tests of this folder need. Without one of them whole files are skipped, so
that it is missing must not pass unseen."""

import shutil

import pytest
from picture import find_chromium


@pytest.mark.parametrize(
    "name, found",
    [("chromium", find_chromium()), ("node", shutil.which("node")), ("go", shutil.which("go"))],
)
def test_each_program_is_here(name, found):
    assert found, (
        f"{name} is missing, and the tests that need it are skipped: tools/setup.sh viewers"
    )
