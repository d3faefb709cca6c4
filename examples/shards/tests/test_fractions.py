import unittest
from fractions import Fraction


class Fractions(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(Fraction(1, 3) + Fraction(1, 6), Fraction(1, 2))

    def test_lowest_terms(self):
        self.assertEqual(str(Fraction(6, -8)), "-3/4")

    def test_floats_are_exact(self):
        self.assertNotEqual(Fraction(0.1), Fraction(1, 10))

    def test_zero_denominator(self):
        with self.assertRaises(ZeroDivisionError):
            Fraction(1, 0)
