package output

import (
	"bytes"

	"zorilla/jobs"
)

// Since passes on the lines that came at a time or later, or at a time that is not known. A line
// came when its first byte did.
type Since struct {
	From int64 // milliseconds since 1970
	Tell func(jobs.Output) error

	open map[StreamOf]bool // whether what was left out ends within a line
}

// Take takes the next piece of one of the streams.
func (s *Since) Take(o jobs.Output) error {
	key := StreamOf{jobs.RankAttempt{Rank: o.Rank, Attempt: o.Attempt}, o.Stream}
	if s.open == nil {
		s.open = map[StreamOf]bool{}
	}
	if o.At != 0 && o.At < s.From {
		s.open[key] = len(o.Data) > 0 && o.Data[len(o.Data)-1] != '\n'
		return nil
	}
	if s.open[key] {
		end := bytes.IndexByte(o.Data, '\n') + 1
		if end == 0 {
			return nil
		}
		delete(s.open, key)
		o.Offset, o.Data = o.Offset+int64(end), o.Data[end:]
	}
	if len(o.Data) == 0 {
		return nil
	}
	return s.Tell(o)
}
