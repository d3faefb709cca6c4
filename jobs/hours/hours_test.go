package hours

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"zorilla/internal/seeds"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"mon-fri 19:00-07:00, sat-sun": "mon-fri 19:00-07:00, sat-sun",
		"  Wed   8:30-12:00 ":          "wed 08:30-12:00",
		"daily 20:00-6:00":             "daily 20:00-06:00",
		"20:00-6:00":                   "daily 20:00-06:00",
		"sat-mon":                      "sat-mon",
		"monday-sunday":                "daily",
		"tue-mon 1:00-2:00":            "daily 01:00-02:00",
		"fri 18:00-24:00":              "fri 18:00-24:00",
		"fri 18:00-0:00":               "fri 18:00-24:00",
		"fri 0:00-24:00":               "fri",
		"fri,fri,sat":                  "fri, sat",
	} {
		w, err := Parse(text)
		if err != nil || w.String() != want {
			t.Errorf("Parse(%q) = %q, %v, want %q", text, w, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                            "want days and times",
		"mon,":                        "want days and times",
		"moon":                        `"moon" is no day`,
		"mon-":                        `"" is no day`,
		"mon-mon":                     "begins and ends on one day",
		"mon 19-7":                    `"19" is no time`,
		"mon 19:00":                   "want from when until when",
		"mon 19:00-7:0":               `"7:0" is no time`,
		"mon 19:00-24:01":             `"24:01" is no time`,
		"mon 19:00-+7:00":             `"+7:00" is no time`,
		"mon 24:00-7:00":              "begins when the day is over",
		"mon 7:00-7:00":               "ends when it begins",
		"mon 7:00-9:00 tue":           "want a comma",
		"7:00-9:00 tue":               "want a comma",
		strings.Repeat("m", 600):      "at most 512",
		strings.Repeat("mon 0:", 500): "at most 512",
		manyRules():                   "at most 32",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.80q): %v, want %q", text, err, want)
		}
	}
}

func manyRules() string {
	var list []string
	for i := range maxRules + 1 {
		list = append(list, fmt.Sprintf("9:%02d-9:59", i))
	}
	return strings.Join(list, ",")
}

const layout = "Mon 2006-01-02 15:04:05 MST"

func TestNext(t *testing.T) {
	const night = "mon-fri 19:00-07:00, sat-sun"
	for _, c := range []struct {
		hours, zone, at string
		open            bool
		next            string // "" = never
	}{
		{"", "UTC", "2026-11-23 12:00:00", true, ""},
		{"daily", "UTC", "2026-11-23 12:00:00", true, ""},
		{"sat-mon, tue-fri 0:00-24:00", "UTC", "2026-11-23 12:00:00", true, ""},
		{"fri-mon 7:00-6:00, daily 6:00-7:30, tue-thu 7:00-6:00", "UTC", "2026-11-23 12:00:00", true, ""},
		{night, "UTC", "2026-11-23 12:00:00", false, "Mon 2026-11-23 19:00:00 UTC"},
		{night, "UTC", "2026-11-23 18:59:59", false, "Mon 2026-11-23 19:00:00 UTC"},
		{night, "UTC", "2026-11-23 19:00:00", true, "Tue 2026-11-24 07:00:00 UTC"},
		{night, "UTC", "2026-11-24 07:00:00", false, "Tue 2026-11-24 19:00:00 UTC"},
		{night, "UTC", "2026-11-27 20:00:00", true, "Mon 2026-11-30 00:00:00 UTC"},
		{"sat-mon", "UTC", "2026-11-30 23:59:59", true, "Tue 2026-12-01 00:00:00 UTC"},
		{"sun 22:00-6:00", "UTC", "2026-11-30 05:00:00", true, "Mon 2026-11-30 06:00:00 UTC"},
		// Clocks are put forward at 2:00, and back at 3:00.
		{"daily 19:00-7:00", "Europe/Amsterdam", "2026-03-28 20:00:00", true, "Sun 2026-03-29 07:00:00 CEST"},
		{"daily 19:00-7:00", "Europe/Amsterdam", "2026-03-29 07:00:00", false, "Sun 2026-03-29 19:00:00 CEST"},
		{"daily 19:00-7:00", "Europe/Amsterdam", "2026-10-24 20:00:00", true, "Sun 2026-10-25 07:00:00 CET"},
		{"daily 19:00-2:30", "Europe/Amsterdam", "2026-03-28 20:00:00", true, "Sun 2026-03-29 03:00:00 CEST"},
		{"daily 2:30-7:00", "Europe/Amsterdam", "2026-03-29 01:00:00", false, "Sun 2026-03-29 03:00:00 CEST"},
		{"sun 2:10-2:50", "Europe/Amsterdam", "2026-03-29 01:00:00", false, "Sun 2026-04-05 02:10:00 CEST"},
		{"daily 19:00-2:30", "Europe/Amsterdam", "2026-10-24 20:00:00", true, "Sun 2026-10-25 02:30:00 CEST"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.ParseInLocation(time.DateTime, c.at, zone)
		if err != nil {
			t.Fatal(err)
		}
		var w Week
		if err := w.UnmarshalText([]byte(c.hours)); err != nil {
			t.Fatal(err)
		}
		next := ""
		if at := w.Next(at); !at.IsZero() {
			next = at.Format(layout)
		}
		if open := w.Open(at); open != c.open || next != c.next {
			t.Errorf("%q at %s in %s: open: %v, next %q, want %v, %q", c.hours, c.at, c.zone, open, next, c.open, c.next)
		}
	}
}

// slow is a Week that looks at each day by itself.
type slow []struct {
	on       [7]bool // from Sunday on
	from, to string
}

func (s slow) open(at time.Time) bool {
	now := at.Format("15:04")
	for _, r := range s {
		today, yesterday := r.on[at.Weekday()], r.on[(at.Weekday()+6)%7]
		if r.from < r.to && today && r.from <= now && now < r.to || r.from > r.to && (today && r.from <= now || yesterday && now < r.to) {
			return true
		}
	}
	return false
}

func drawRules(rnd *rand.Rand) (s slow, text string) {
	names, texts := [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, []string{}
	for len(s) == 0 || len(s) < 4 && rnd.IntN(2) == 0 {
		from, to := rnd.IntN(dayLong), 1+rnd.IntN(dayLong)
		if rnd.IntN(3) == 0 { // near the hour at which clocks are set
			from, to = 60+rnd.IntN(120), 60+rnd.IntN(120)
		}
		if from == to {
			continue
		}
		first, more := rnd.IntN(7), 1+rnd.IntN(6)
		s = append(s, slow{{from: clock(from), to: clock(to)}}...)
		for i := range more + 1 {
			s[len(s)-1].on[(first+i)%7] = true
		}
		texts = append(texts, fmt.Sprintf("%s-%s %s-%s", names[first], names[(first+more)%7], clock(from), clock(to)))
	}
	return s, strings.Join(texts, ",")
}

// A year minute by minute has the same hours, whatever is done to the clock.
func TestYear(t *testing.T) {
	seed := seeds.One(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, name := range []string{"UTC", "Europe/Amsterdam", "America/New_York", "Australia/Lord_Howe"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		rules, text := drawRules(rnd)
		w, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, zone)
		open, next := w.Open(begin), w.Next(begin)
		for at := begin; at.Before(begin.AddDate(1, 0, 0)); at = at.Add(time.Minute) {
			want := rules.open(at)
			if !at.Before(next) && !next.IsZero() {
				if !at.Equal(next) {
					t.Fatalf("seed %d: %q in %s: %s is no full minute", seed, w, name, next.Format(layout))
				}
				open, next = !open, w.Next(at)
			}
			if w.Open(at) != want || open != want {
				t.Fatalf("seed %d: %q in %s at %s: open %v, by what comes next %v, want %v", seed, w, name, at.Format(layout), w.Open(at), open, want)
			}
			if rnd.IntN(1000) == 0 {
				between := at.Add(time.Duration(rnd.Int64N(int64(time.Minute))))
				if got := w.Next(between); !got.Equal(next) {
					t.Fatalf("seed %d: %q in %s after %s: %s, want %s", seed, w, name, between.Format(layout), got.Format(layout), next.Format(layout))
				}
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"mon-fri 19:00-07:00, sat-sun", "daily 20:00-6:00", "sat-mon", "wed 8:30-12:00,thu 0:00-24:00", "tue-mon"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(w.String())
		if err != nil || again.String() != w.String() || !slices.Equal(again.rules, w.rules) {
			t.Fatalf("%q: %q is read as %q, %v", text, w, again, err)
		}
		at := time.Date(2026, 11, 23, 12, 34, 56, 7, time.UTC)
		if next := w.Next(at); !next.IsZero() && (!next.After(at) || w.Open(next) == w.Open(at) || w.Open(next.Add(-1)) != w.Open(at)) {
			t.Fatalf("%q: next after %v is %v", w, at, next)
		}
	})
}
