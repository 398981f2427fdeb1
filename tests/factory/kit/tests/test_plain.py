import pytest

from kit import Box, mean, parse, slug, spans


def test_slug():
    assert slug("Hello World") == "hello-world"
    assert slug("  a  b ") == "a-b"


@pytest.mark.parametrize("text, expected", [("A", "a"), ("B C", "b-c"), ("", "")])
def test_slug_of_many(text, expected):
    assert slug(text) == expected


def test_slug_of_words(words):
    result = [slug(word) for word in words]
    expected = ["one", "two-three", "four"]
    assert result == expected


def test_parse():
    assert parse("a=1; b=22") == {"a": 1, "b": 22}


def test_parse_refuses():
    with pytest.raises(ValueError):
        parse("nothing")


def test_spans():
    assert list(spans("ab  cde")) == [(0, 2), (4, 7)]


def test_grow(box):
    larger = box.grow(3)
    assert isinstance(larger, Box)
    assert larger.area() == 54
    assert box.area() == 6


def test_mean():
    assert mean([1, 2, 6]) == pytest.approx(3.0)
    assert mean(iter([0.5])) == 0.5
