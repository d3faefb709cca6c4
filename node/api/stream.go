package api

import (
	"fmt"
	"net/http"
	"strconv"

	"zorilla/jobs"
)

// output sends frames as the service hands them out. An error before the
// first frame is an ordinary one; later it is a frame.
func (h peerHandler) output(w http.ResponseWriter, r *http.Request) {
	job := r.PathValue("job")
	q, err := outputQuery(r, job)
	if err != nil {
		writeError(w, err)
		return
	}
	flush := http.NewResponseController(w).Flush
	buf := make([]byte, 0, 2*frameHeader+smallPiece)
	started, told := false, int64(0)
	err = h.Output(r.Context(), job, q, func(o jobs.Output) error {
		if !started {
			w.Header().Set("Content-Type", "application/octet-stream")
			started = true
		}
		buf = buf[:0]
		if q.Times && o.At != told {
			told = o.At
			buf = appendFrame(buf, frameTime, jobs.Output{Offset: o.At})
		}
		if err := writeOutput(w, buf, o); err != nil {
			return err
		}
		return flush()
	})
	if err != nil && !started {
		writeError(w, err)
		return
	}
	_, _ = w.Write(appendEnd(nil, err)) // the client is gone if this fails
}

func outputQuery(r *http.Request, job string) (OutputQuery, error) {
	if err := checkJob(job); err != nil {
		return OutputQuery{}, err
	}
	rank, err := strconv.Atoi(or(r.FormValue("rank"), "-1"))
	if err != nil || rank < -1 || rank > jobs.MaxTaskID {
		return OutputQuery{}, fmt.Errorf("%w: rank=%.40q: want 0 to %d", ErrInvalid, r.FormValue("rank"), jobs.MaxTaskID)
	}
	follow, err := boolean(r, "follow")
	if err != nil {
		return OutputQuery{}, err
	}
	files, err := boolean(r, "files")
	if err != nil {
		return OutputQuery{}, err
	}
	times, err := boolean(r, "times")
	if err != nil {
		return OutputQuery{}, err
	}
	since, err := strconv.ParseInt(or(r.FormValue("since"), "0"), 10, 64)
	if err != nil || since < 0 {
		return OutputQuery{}, fmt.Errorf("%w: since=%.40q: want milliseconds since 1970", ErrInvalid, r.FormValue("since"))
	}
	attempt, err := strconv.ParseInt(or(r.FormValue("attempt"), "0"), 10, 32)
	if err != nil || attempt < 0 || attempt > 0 && (follow || files) {
		return OutputQuery{}, fmt.Errorf("%w: attempt=%.40q: want a number from 1, without follow and files", ErrInvalid, r.FormValue("attempt"))
	}
	return OutputQuery{Rank: rank, Follow: follow, Files: files, Times: times, Since: since, Attempt: int(attempt)}, nil
}

// stdin hands the request body to the service while it comes in. The answer
// may be due before the body has ended (the job is over, or unknown), and an
// idle body must not hold it up: hence full duplex, and no reuse of the
// connection.
func (h peerHandler) stdin(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			writeError(w, fmt.Errorf("%w: the connection cannot carry standard input: %v", ErrUnavailable, err))
			return
		}
		w.Header().Set("Connection", "close")
	}
	answer(func(r *http.Request) (any, error) {
		job := r.PathValue("job")
		if err := checkJob(job); err != nil {
			return nil, err
		}
		return done{}, h.Stdin(r.Context(), job, r.Body)
	})(w, r)
}

// changes answers with its headers as soon as it watches, and ends at the
// next change.
func (h handler) changes(w http.ResponseWriter, r *http.Request) {
	changed := h.Changes()
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	select {
	case <-changed:
	case <-r.Context().Done():
	}
}
