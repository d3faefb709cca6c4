package process

import "time"

// heardEvery bounds how often the supervisor is told that the origin is there.
const heardEvery = 30 * time.Second

// outbox is what the supervisor is to be told: bounded, however slowly that reads,
// so that no caller waits for it. It is guarded by worker.mu.
type outbox struct {
	told    [2]int64  // what was acknowledged, as the supervisor knows it
	heard   bool      // that the origin was heard of
	hearing time.Time // when that was noted last
	signal  message   // no kind = none
	stop    bool
	notice  time.Duration
	grace   time.Duration
	full    int64 // what the worker takes on a disk that is full; 0 = that is not so
	tasks   []message
}

// stopAfter asks for the end; the shortest times count.
func (b *outbox) stopAfter(notice, grace time.Duration) {
	notice, grace = min(max(notice, 0), maxGrace), min(max(grace, 0), maxGrace)
	if b.stop {
		notice, grace = min(notice, b.notice), min(grace, b.grace)
	}
	b.stop, b.notice, b.grace = true, notice, grace
}

// heardAt notes that the origin is there, often enough for a limit, and reports
// whether that is to be told.
func (b *outbox) heardAt(now time.Time, limit time.Duration) bool {
	if limit <= 0 || !b.hearing.IsZero() && now.Sub(b.hearing) < min(limit/20, heardEvery) {
		return false
	}
	b.heard, b.hearing = true, now
	return true
}

// maxAdds bounds what waits for a supervisor that does not read: what is left
// out is said again, see TaskFeed.Add.
const maxAdds = 64

// add appends tasks.
func (b *outbox) add(m message) {
	if len(b.tasks) < maxAdds {
		b.tasks = append(b.tasks, m)
	}
}

// drain empties the box. acked is up to where output was delivered: steps of at
// most step bytes make no difference to the supervisor and are saved up.
func (b *outbox) drain(acked [2]int64, step int64) []message {
	var all []message
	if b.full > 0 {
		all = append(all, message{Kind: kindStop, Full: b.full})
	}
	if b.stop {
		all = append(all, message{Kind: kindStop, Notice: b.notice, Grace: b.grace})
	}
	if b.heard {
		all = append(all, message{Kind: kindHeard})
	}
	if b.signal.Kind != "" {
		all = append(all, b.signal)
	}
	all = append(all, b.tasks...)
	b.full, b.stop, b.heard, b.signal, b.tasks = 0, false, false, message{}, nil
	if acked[0]-b.told[0] > step || acked[1]-b.told[1] > step {
		b.told = acked
		all = append(all, message{Kind: kindAck, Stdout: acked[0], Stderr: acked[1]})
	}
	return all
}
