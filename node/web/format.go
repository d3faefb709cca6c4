package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"zorilla/internal/units"
	"zorilla/node/api"
)

// label makes a name or a reason fit to be shown: one line, at most limit
// characters, no invisible characters that could change how the rest reads.
func label(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > limit {
			b.WriteRune('…')
			break
		}
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			r = '�'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// span writes a length of time as clock.js does.
func span(d time.Duration) string {
	s := max(0, d.Seconds())
	switch n := int64(s); {
	case s < 9.95:
		return fmt.Sprintf("%.1f s", s)
	case n < 60:
		return fmt.Sprintf("%d s", n)
	case n < 3600:
		return fmt.Sprintf("%d min %02d s", n/60, n%60)
	case n < 86400:
		return fmt.Sprintf("%d h %02d min", n/3600, n/60%60)
	default:
		return fmt.Sprintf("%d d %d h", n/86400, n/3600%24)
	}
}

// ago writes how long something is past, as clock.js does.
func ago(d time.Duration) string {
	switch n := int64(d.Seconds()); {
	case n < 5:
		return "just now"
	case n < 60:
		return fmt.Sprintf("%d s ago", n)
	case n < 3600:
		return fmt.Sprintf("%d min ago", n/60)
	case n < 86400:
		return fmt.Sprintf("%d h ago", n/3600)
	default:
		return fmt.Sprintf("%d d ago", n/86400)
	}
}

// latency writes a round trip; 0 means not measured.
func latency(d time.Duration) string {
	text, known := units.Millis(d)
	if !known {
		return "–"
	}
	return text + " ms"
}

// far is the length of a latency bar from 0 to 100: logarithmic from 0.1 ms to
// 300 ms, since a site and a continent must both be visible.
func far(d time.Duration) int {
	if d < units.NoNetwork {
		return 0
	}
	ms := float64(d) / float64(time.Millisecond)
	return int(math.Round(100 * min(1, max(0.03, math.Log(ms/0.1)/math.Log(3000)))))
}

// count writes a number with its thousands apart.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(int64(n)) + " " + many
}

// stamp is a moment for <time>; At is empty if there is none. The text is for
// the first paint only: clock.js goes on with it, and a view does not change
// because time passes.
type stamp struct {
	At   string `json:"at"`
	Text string `json:"-"`
}

func since(t, now time.Time) stamp {
	if t.IsZero() {
		return stamp{}
	}
	return stamp{At: iso(t), Text: ago(now.Sub(t))}
}

// period is a stretch of time for <time>: it grows while Until is empty.
type period struct {
	From  string `json:"from"`
	Until string `json:"until"`
	Text  string `json:"-"`
}

func between(from, until, now time.Time) period {
	switch {
	case from.IsZero():
		return period{}
	case until.IsZero():
		return period{From: iso(from), Text: span(now.Sub(from))}
	}
	return period{From: iso(from), Until: iso(until), Text: span(until.Sub(from))}
}

func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// speed writes how fast files go.
func speed(s api.Speed) string {
	switch {
	case s.Rate <= 0:
		return "–"
	case s.Least:
		return "> " + units.Bytes(s.Rate) + "/s"
	}
	return units.Bytes(s.Rate) + "/s"
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
