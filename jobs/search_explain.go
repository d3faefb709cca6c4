package jobs

import (
	"fmt"
	"time"
)

// outlook is what a search waits for, and why.
type outlook struct {
	until time.Time // when next is due; zero = only after an input
	flood time.Time // when the next flood is due
	why
}

// why is what keeps a search from the workers that are wanted.
type why struct {
	wanted int
	least  int    // of them are taken at once
	asked  bool   // somebody has answered
	room   int    // for so many workers of the job, at all nodes that have answered
	apart  string // why the nodes that offer are too far apart, or too few; "" = they are not
}

// outlook says what the search waits for.
func (s *search) outlook(d demand) outlook {
	o := outlook{
		flood: earlier(s.schedule.Wake(), s.refloodAt),
		why:   why{wanted: d.wanted, least: d.least, asked: len(s.answers) > 0, room: s.roomFor, apart: s.group.apart},
	}
	switch {
	case d.wanted == 0:
	case !s.decideAt.IsZero():
		o.until = earlier(s.decideAt, s.extendAt)
	default:
		o.until = earlier(earlier(o.flood, s.extendAt), s.releaseAt)
	}
	return o
}

// text says it in one line; answers is what the nodes have answered.
func (w why) text(answers Tally) string {
	noun := "workers"
	if w.wanted == 1 {
		noun = "worker"
	}
	switch {
	case !w.asked:
		return fmt.Sprintf("looking for %d %s", w.wanted, noun)
	case w.room < w.least:
		return fmt.Sprintf("waiting for %d %s: %s; together they have room for %d", w.wanted, noun, answers, w.room)
	case w.apart != "":
		return fmt.Sprintf("waiting for %d %s: %s; %s", w.wanted, noun, answers, w.apart)
	}
	return fmt.Sprintf("waiting for %d %s: %s", w.wanted, noun, answers)
}
