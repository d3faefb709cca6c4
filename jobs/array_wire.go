package jobs

import (
	"encoding/binary"
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/process"
)

// packResults makes results small: five varints each, the place as the
// distance from the task after the one before.
func packResults(rs []process.TaskResult) []byte {
	var b []byte
	next := 0
	for _, r := range rs {
		b = binary.AppendVarint(b, int64(r.Place-next))
		b = binary.AppendVarint(b, int64(r.Code))
		b = binary.AppendVarint(b, r.Stdout)
		b = binary.AppendVarint(b, r.Stderr)
		b = binary.AppendVarint(b, int64(r.Took/time.Microsecond))
		next = r.Place + 1
	}
	return b
}

// unpackResults reads what packResults made, at most maxResults.
func unpackResults(b []byte) ([]process.TaskResult, error) {
	var rs []process.TaskResult
	next := int64(0)
	for len(b) > 0 {
		var v [5]int64
		for i := range v {
			n := 0
			if v[i], n = binary.Varint(b); n <= 0 {
				return nil, fmt.Errorf("results of tasks: %w", codec.ErrMalformed)
			}
			b = b[n:]
		}
		place := next + v[0]
		if len(rs) == maxResults || v[0] < -MaxTasks || v[0] > MaxTasks || place < 0 || place >= MaxTasks || v[1] < 0 || v[1] > 255 ||
			v[2] < 0 || v[3] < 0 || v[4] < 0 || v[4] > int64(MaxTime/time.Microsecond) {
			return nil, fmt.Errorf("results of tasks: %w", codec.ErrMalformed)
		}
		rs = append(rs, process.TaskResult{Place: int(place), Code: int(v[1]), Stdout: v[2], Stderr: v[3], Took: time.Duration(v[4]) * time.Microsecond})
		next = place + 1
	}
	return rs, nil
}

// check refuses what no honest participant sends.
func (t *WorkerTasks) check() error {
	if t == nil {
		return nil
	}
	if t.From < 0 || t.Ended < t.From || t.Added < t.Ended || len(t.Results) > maxResults*50 {
		return fmt.Errorf("report: tasks: %w", codec.ErrMalformed)
	}
	rs, err := unpackResults(t.Results)
	if err == nil && t.From+len(rs) > t.Ended {
		err = fmt.Errorf("report: tasks: %w", codec.ErrMalformed)
	}
	return err
}

// checkTaskRanges refuses ranges that name no tasks.
func checkTaskRanges(ranges []process.TaskRange) error {
	for _, r := range ranges {
		if r.From < 0 || r.Count < 1 || r.Count > MaxTasks || r.From > MaxTasks-r.Count {
			return fmt.Errorf("tasks %d+%d: %w", r.From, r.Count, codec.ErrMalformed)
		}
	}
	return nil
}
