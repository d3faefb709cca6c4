import calendar
import unittest


class Calendar(unittest.TestCase):
    def test_leap_years(self):
        self.assertTrue(calendar.isleap(2028))

    def test_centuries_do_not_leap(self):
        self.assertFalse(calendar.isleap(2100))

    def test_every_fourth_century_does(self):
        self.assertTrue(calendar.isleap(2000))

    def test_first_day_of_the_century(self):
        self.assertEqual(calendar.weekday(2001, 1, 1), calendar.MONDAY)
