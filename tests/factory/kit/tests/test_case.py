import unittest

from kit import Box, mean, parse, slug


class TestTools(unittest.TestCase):
    def setUp(self):
        self.values = [1.5, 2.5, 5.0]

    def test_mean(self):
        self.assertAlmostEqual(mean(self.values), 3.0)

    def test_order(self):
        self.assertEqual(mean(self.values), mean(reversed(self.values)))

    def test_slug(self):
        self.assertEqual(slug("X Y"), "x-y")
        self.assertTrue(slug("Q").islower())

    def test_parse_refuses(self):
        with self.assertRaises(ValueError):
            parse("a=1;b")
        self.assertIn("k", parse("k=5"))

    def test_box(self):
        self.assertEqual(vars(Box(1, 2).grow(2)), {"width": 2, "height": 4})
