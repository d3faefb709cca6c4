package hours

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const example = "such as mon-fri 19:00-07:00, sat-sun"

// Parse reads times of a week as people write them: days, or daily, and from when until when, with commas between
// them, as in "mon-fri 19:00-07:00, sat-sun". A time may pass midnight, days the end of the week, and without a time
// days are meant as a whole.
func Parse(text string) (w Week, err error) {
	if len(text) > maxText {
		return w, fmt.Errorf("hours of %d bytes, at most %d", len(text), maxText)
	}
	for part := range strings.SplitSeq(text, ",") {
		r, err := parseRule(strings.Fields(strings.ToLower(part)))
		if err != nil {
			return Week{}, err
		}
		if !slices.Contains(w.rules, r) {
			w.rules = append(w.rules, r)
		}
	}
	if len(w.rules) > maxRules {
		return Week{}, fmt.Errorf("hours of %d times, at most %d", len(w.rules), maxRules)
	}
	return w, nil
}

func parseRule(words []string) (r rule, err error) {
	switch len(words) {
	case 0:
		return r, errors.New("want days and times, " + example)
	case 1, 2:
	default:
		return r, fmt.Errorf("%.40q after %s %.40q: want a comma between times, %s", words[2], words[0], words[1], example)
	}
	if isTime(words[0]) {
		words = append([]string{"daily"}, words...)
	}
	if r.first, r.last, err = parseDays(words[0]); err != nil {
		return r, err
	}
	r.to = dayLong
	if len(words) > 1 {
		r.from, r.to, err = parseTimes(words[1:])
	}
	return r, err
}

func isTime(word string) bool { return word[0] >= '0' && word[0] <= '9' }

func parseDays(word string) (first, last int, err error) {
	if word == "daily" {
		return 0, 6, nil
	}
	from, to, several := strings.Cut(word, "-")
	if first, err = parseDay(from); err != nil || !several {
		return first, first, err
	}
	if last, err = parseDay(to); err == nil && last == first {
		err = fmt.Errorf("%.40s begins and ends on one day: want two days, one, or daily", word)
	}
	if first == (last+1)%7 {
		first, last = 0, 6
	}
	return first, last, err
}

func parseDay(word string) (day int, err error) {
	day = slices.IndexFunc(days[:], func(name string) bool { return word == name || word == name[:3] })
	if day < 0 {
		return 0, fmt.Errorf("%.40q is no day: want mon, tue, wed, thu, fri, sat, sun or daily", word)
	}
	return day, nil
}

func parseTimes(words []string) (from, to int, err error) {
	if len(words) > 1 {
		return 0, 0, fmt.Errorf("%.40q after %.40s: want a comma between times, %s", words[1], words[0], example)
	}
	begin, end, ok := strings.Cut(words[0], "-")
	if !ok {
		return 0, 0, fmt.Errorf("%.40q: want from when until when, as in 19:00-07:00", words[0])
	}
	if from, err = parseClock(begin); err != nil {
		return 0, 0, err
	}
	if to, err = parseClock(end); err != nil {
		return 0, 0, err
	}
	switch {
	case from == dayLong:
		return 0, 0, fmt.Errorf("%.40s begins when the day is over: want 00:00, of the next day", words[0])
	case from == to:
		return 0, 0, fmt.Errorf("%.40s ends when it begins: want no time for a whole day", words[0])
	case to == 0:
		to = dayLong
	}
	return from, to, nil
}

func parseClock(text string) (minute int, err error) {
	hours, minutes, ok := strings.Cut(text, ":")
	h, m := number(hours), number(minutes)
	if minute = h*60 + m; !ok || h < 0 || m < 0 || len(minutes) != 2 || m > 59 || minute > dayLong {
		return 0, fmt.Errorf("%.40q is no time: want one from 00:00 to 24:00", text)
	}
	return minute, nil
}

// number reads one or two digits; -1 = it is none.
func number(text string) int {
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || len(text) > 2 {
		return -1
	}
	return int(n)
}
