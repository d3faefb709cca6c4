package output

import (
	"context"
	"io"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// tailSize is how many bytes at the end of a file are enough for those who only want the end:
// the last piece is among them, however long, and some before it.
const tailSize = wire.MaxBody + 1<<20

// TailStart returns where the end of the file begins. A piece that goes on there is no frame.
func (w *File) TailStart() int64 {
	size, _, _ := w.Spool.State()
	return max(0, size-tailSize)
}

// Tail calls f with each piece in the end of the file that is wanted and whole, in order. What is
// missing it does not tell. F must not keep what it is given.
func (w *File) Tail(ctx context.Context, want func(jobs.RankAttempt) bool, f func(jobs.Output) error) error {
	src := w.Spool.Reader(ctx, false)
	defer src.Close()
	src.Pos = w.TailStart()
	r := NewFrames(w.Job, src, src.Pos)
	defer r.release()
	for {
		fr, whole, err := r.piece(want)
		if err == io.EOF {
			return nil
		}
		if err == nil && whole {
			err = f(fr.Output)
		}
		if err != nil {
			return err
		}
	}
}
