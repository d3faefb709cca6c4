package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// ErrOld: the node is of an earlier version, and cannot do that.
var ErrOld = errors.New("the node is of an earlier version")

// Output reads what workers of a job at a node write, beside its reports. held reports what
// is here: first of all of these workers, then of those of which there is more; it waits
// for that, and an error ends the stream. Each piece is handed to take, which must not keep
// it. It returns nil when the node has nothing more for now, and ErrOld if it does not know
// how.
func (c *Client) Output(ctx context.Context, to vicinity.ID, job jobs.ID, held func(context.Context) ([]wire.Held, error), take func(jobs.Output) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, w := io.Pipe()
	told := make(chan struct{})
	go func() {
		defer close(told)
		_ = w.CloseWithError(writeHeld(ctx, w, held)) // never fails
	}()
	defer func() { body.Close(); cancel(); <-told }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(to)+PathOutput+"?"+url.Values{"job": {string(job)}}.Encode(), body)
	if err != nil {
		return err
	}
	r, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		if err = refusal(to, r, "has no streams of output"); r.StatusCode == http.StatusNotFound && errors.Is(err, jobs.ErrNotRunning) {
			err = ErrOld
		}
		return err
	}
	buf := make([]byte, wire.PieceHeader+wire.MaxPiece)
	for {
		o, err := wire.ReadPiece(r.Body, buf)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = take(o)
		}
		if err != nil {
			return err
		}
	}
}

// writeHeld writes what is held, whenever there is more.
func writeHeld(ctx context.Context, w io.Writer, held func(context.Context) ([]wire.Held, error)) error {
	var buf []byte
	for first := true; ; first = false {
		list, err := held(ctx)
		if err != nil {
			return err
		}
		buf = buf[:0]
		for _, h := range list {
			buf = wire.AppendHeld(buf, h)
		}
		if first {
			buf = wire.AppendHeld(buf, wire.Held{})
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
}

// Sending is what a node that is asked for a stream of output does.
type Sending interface {
	// Held takes what the origin has.
	Held(list []wire.Held)
	// Send writes pieces until there are none for now, or ctx ends. It calls idle before
	// it waits.
	Send(ctx context.Context, w io.Writer, idle func() error) error
}

// ServeOutput answers Output. Begin says what is to be sent; its errors are the answer.
func (s *Server) ServeOutput(begin func(from vicinity.ID, job jobs.ID, first []wire.Held) (Sending, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, ok := s.asker(w, r)
		if !ok {
			return
		}
		job := jobs.ID(r.URL.Query().Get("job"))
		first, err := firstHeld(r.Body)
		if err == nil && !job.Valid() {
			err = errors.New("want a job")
		}
		if err != nil {
			s.Counters.Malformed()
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := begin(from, job, first)
		if err != nil {
			sayError(w, err)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		heard := make(chan struct{})
		go func() {
			defer close(heard)
			defer cancel()
			for {
				h, _, err := wire.ReadHeld(r.Body)
				if err != nil {
					return
				}
				out.Held([]wire.Held{h})
			}
		}()
		err = out.Send(ctx, w, http.NewResponseController(w).Flush)
		if err != nil {
			panic(http.ErrAbortHandler) // the reader must not take this for the end
		}
		r.Body.Close()
		<-heard
	}
}

// firstHeld reads what the origin holds when it begins.
func firstHeld(r io.Reader) (list []wire.Held, err error) {
	for {
		h, first, err := wire.ReadHeld(r)
		if err != nil || first {
			return list, err
		}
		if list = append(list, h); len(list) > jobs.MaxSlots*4 {
			return nil, fmt.Errorf("it holds output of more than %d workers", jobs.MaxSlots*4)
		}
	}
}
