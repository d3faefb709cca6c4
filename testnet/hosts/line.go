package main

import "time"

// maxBacklog is how long a packet may wait for a line with a limited rate
// before it is dropped, as at the port of a switch.
const maxBacklog = 50 * time.Millisecond

// line says when packets leave one direction between two sites: in the order in
// which they came, each after the line's delay. It is a core: no clock, and the
// packets themselves lie elsewhere.
type line struct {
	delay time.Duration
	free  time.Time // the last packet has been put on the wire then
}

// enter returns when a packet of so many bytes arrives that comes now, at a
// rate in Mbit/s (0: unlimited), and whether it is not dropped.
func (l *line) enter(now time.Time, bytes int, mbit float64) (due time.Time, ok bool) {
	begin := now
	if l.free.After(begin) {
		begin = l.free
	}
	if begin.Sub(now) > maxBacklog {
		return time.Time{}, false
	}
	l.free = begin
	if mbit > 0 {
		l.free = begin.Add(time.Duration(float64(bytes) * 8 / mbit * float64(time.Microsecond)))
	}
	return l.free.Add(l.delay), true
}
