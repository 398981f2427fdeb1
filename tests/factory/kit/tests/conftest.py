import pytest

from kit import Box


@pytest.fixture
def box():
    return Box(2, 3)


@pytest.fixture(scope="module")
def words():
    return ["One", "two  three", " four"]
