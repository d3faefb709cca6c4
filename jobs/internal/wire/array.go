package wire

import (
	"encoding/binary"
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/process"
)

// withFiles is added to the code of a task that left files.
const withFiles = 256

// PackResults makes results small: five varints each, the place as the
// distance from the task after the one before, and a sixth if there are files.
func PackResults(rs []process.TaskResult) []byte {
	var b []byte
	next := 0
	for _, r := range rs {
		b = binary.AppendVarint(b, int64(r.Place-next))
		code := int64(r.Code)
		if r.Files > 0 {
			code += withFiles
		}
		b = binary.AppendVarint(b, code)
		b = binary.AppendVarint(b, r.Stdout)
		b = binary.AppendVarint(b, r.Stderr)
		b = binary.AppendVarint(b, int64(r.Took/time.Microsecond))
		if r.Files > 0 {
			b = binary.AppendVarint(b, r.Files)
		}
		next = r.Place + 1
	}
	return b
}

// UnpackResults reads what PackResults made, at most MaxResults.
func UnpackResults(b []byte) ([]process.TaskResult, error) {
	var rs []process.TaskResult
	next := int64(0)
	for len(b) > 0 {
		v := [6]int64{}
		for i := range v {
			if i == 5 && v[1] < withFiles {
				break
			}
			n := 0
			if v[i], n = binary.Varint(b); n <= 0 || i == 5 && v[i] == 0 {
				return nil, fmt.Errorf("results of tasks: %w", codec.ErrMalformed)
			}
			b = b[n:]
		}
		if v[5] > 0 {
			v[1] -= withFiles
		}
		place := next + v[0]
		if len(rs) == jobs.MaxResults || v[0] < -jobs.MaxTasks || v[0] > jobs.MaxTasks || place < 0 || place >= jobs.MaxTasks || v[1] < 0 || v[1] > 255 ||
			v[2] < 0 || v[3] < 0 || v[4] < 0 || v[4] > int64(jobs.MaxTime/time.Microsecond) || v[5] < 0 {
			return nil, fmt.Errorf("results of tasks: %w", codec.ErrMalformed)
		}
		rs = append(rs, process.TaskResult{Place: int(place), Code: int(v[1]), Stdout: v[2],
			Stderr: v[3], Files: v[5], Took: time.Duration(v[4]) * time.Microsecond})
		next = place + 1
	}
	return rs, nil
}

// check refuses what no honest participant sends.
func (t *WorkerTasks) check() error {
	if t == nil {
		return nil
	}
	if t.From < 0 || t.Ended < t.From || t.Added < t.Ended || len(t.Results) > jobs.MaxResults*60 {
		return fmt.Errorf("report: tasks: %w", codec.ErrMalformed)
	}
	rs, err := UnpackResults(t.Results)
	if err == nil && t.From+len(rs) > t.Ended {
		err = fmt.Errorf("report: tasks: %w", codec.ErrMalformed)
	}
	return err
}

// CheckTaskRanges refuses ranges that name no tasks.
func CheckTaskRanges(ranges []process.TaskRange) error {
	for _, r := range ranges {
		if r.From < 0 || r.Count < 1 || r.Count > jobs.MaxTasks || r.From > jobs.MaxTasks-r.Count {
			return fmt.Errorf("tasks %d+%d: %w", r.From, r.Count, codec.ErrMalformed)
		}
	}
	return nil
}

// Report of a worker's tasks, and its answer.
type (
	// WorkerTasks is part of a WorkerReport: results that follow each other.
	WorkerTasks struct {
		From    int    `json:"from"`              // number of the first one
		Results []byte `json:"results,omitempty"` // packed, see PackResults
		Added   int    `json:"added"`             // tasks that the worker has got
		Ended   int    `json:"ended"`             // of which so many have ended
	}
	// WorkerTasksAck is part of a WorkerAck.
	WorkerTasksAck struct {
		Results int                 `json:"results"` // that the origin has
		Before  int                 `json:"before"`  // the tasks that follow come after so many
		Ranges  []process.TaskRange `json:"ranges,omitempty"`
		Last    bool                `json:"last,omitempty"`
	}
)

// Incomplete reports whether there are more results than one report holds; t
// may be nil.
func (t *WorkerTasks) Incomplete() bool { return t != nil && t.Ended-t.From > jobs.MaxResults }
