import json
import math

from kit import entries, entry, headline, mean, parse, slug, spans, terms


def check(found, expected):
    assert found == expected, f"{found} is not {expected}"


class TestHelpers:
    def test_checks(self):
        check(slug("Some Text"), "some-text")

    def test_close(self):
        assert math.isclose(mean([0.1, 0.3]), 0.2)

    def test_as_text(self):
        assert json.dumps(parse("z=3")) == '{"z": 3}'

    def test_many(self):
        for text, count in [("a b", 2), ("a", 1), ("", 0)]:
            assert len(list(spans(text))) == count

    def test_entry(self):
        assert entry("a = 1") == ("a", "1")

    def test_entries(self):
        assert list(entries("a=1\nb = 2")) == [("a", "1"), ("b", "2")]

    def test_headline(self):
        assert headline("one TWO") == "One Two"
        assert terms("one TWO") == ("one", "two")
