package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api/apitest"
	"zorilla/transfer"
)

// work runs a job: its command on this machine, once for each rank. The
// command "never" finds no workers.
func (f *fakeNode) work(j *apitest.Job) {
	spec := j.Status().Spec
	if spec.Args[0] == "never" {
		f.never(j)
		return
	}
	j.Update(func(s *jobs.Status) {
		s.State, s.Started = jobs.Running, time.Now().UTC()
		s.Rounds = []jobs.Round{{Number: 1, Radius: 1, At: s.Started, Wanted: spec.Min, Reached: 2, Offers: 2, Workers: spec.Min}}
		for rank := range spec.Min {
			s.Workers = append(s.Workers, jobs.WorkerStatus{Rank: rank, Attempt: 1, Node: f.Members[0].ID, Name: "here", State: jobs.WorkerRunning})
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		select {
		case <-j.Cancelled():
			stop()
		case <-ctx.Done():
		}
	}()
	var all sync.WaitGroup
	for rank := range spec.Min {
		all.Go(func() { f.rank(ctx, j, rank) })
	}
	all.Wait()
	j.Update(func(s *jobs.Status) {
		if s.State.Final() {
			return
		}
		s.State, s.ExitCode, s.Ended = jobs.Completed, 0, time.Now().UTC()
		for _, w := range s.Workers {
			if w.Exit.Code > s.ExitCode {
				s.State, s.ExitCode, s.Reason = jobs.Failed, w.Exit.Code, "rank "+strconv.Itoa(w.Rank)+" ended with "+strconv.Itoa(w.Exit.Code)
			}
		}
	})
}

func (f *fakeNode) never(j *apitest.Job) {
	j.Update(func(s *jobs.Status) { s.Reason = "needs more workers: 2 nodes asked, both busy" })
	spec := j.Status().Spec
	if spec.GiveUp == 0 {
		return
	}
	j.Update(func(s *jobs.Status) {
		s.State, s.Reason, s.ExitCode, s.Ended = jobs.Failed, "gave up: no workers in "+spec.GiveUp.String(), jobs.CodeZorilla, time.Now().UTC()
	})
}

// rank runs one worker.
func (f *fakeNode) rank(ctx context.Context, j *apitest.Job, rank int) {
	code, detail := 0, ""
	out, warnings, err := f.runRank(ctx, j, rank)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
		if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
			code = 128 + int(status.Signal())
		}
	} else if err != nil {
		code, detail = 127, err.Error()
	}
	j.Update(func(s *jobs.Status) {
		w := &s.Workers[rank]
		w.State = jobs.WorkerEnded
		w.Exit = &work.Exit{Code: code, Cause: work.Exited, Detail: detail, Ended: time.Now().UTC()}
		s.Warnings = append(s.Warnings, warnings...)
		if !out.Manifest.IsZero() {
			s.Outputs = append(s.Outputs, out)
		}
	})
}

func (f *fakeNode) runRank(ctx context.Context, j *apitest.Job, rank int) (jobs.RankOutput, []string, error) {
	out := jobs.RankOutput{Rank: rank, Attempt: 1}
	st := j.Status()
	dir, err := os.MkdirTemp("", "zorilla-fake-")
	if err != nil {
		return out, nil, err
	}
	defer os.RemoveAll(dir)
	get := transfer.GetterFunc(func(h transfer.Hash, _ []byte) ([]byte, error) { return f.Chunk(ctx, "", h) })
	put := transfer.PutterFunc(func(h transfer.Hash, b []byte) error { return f.PutChunk(ctx, h, b) })
	var in transfer.Manifest
	if !st.Spec.Inputs.IsZero() {
		if in, err = transfer.LoadManifest(get, st.Spec.Inputs); err != nil {
			return out, nil, err
		}
		// A process that another goroutine starts meanwhile would hold open what is
		// to be executed here.
		syscall.ForkLock.RLock()
		err = in.Write(ctx, get, dir)
		syscall.ForkLock.RUnlock()
		if err != nil {
			return out, nil, err
		}
	}
	cmd := exec.CommandContext(ctx, st.Spec.Args[0], st.Spec.Args[1:]...)
	if cmd.Path == st.Spec.Args[0] && !filepath.IsAbs(cmd.Path) {
		cmd.Path = filepath.Join(dir, cmd.Path)
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RANK="+strconv.Itoa(rank), "ZORILLA_JOB_ID="+string(st.ID))
	for k, v := range st.Spec.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdout = &emitter{job: j, rank: rank, stream: work.Stdout}
	cmd.Stderr = &emitter{job: j, rank: rank, stream: work.Stderr}
	if rank == 0 && st.Spec.Stdin {
		w, err := cmd.StdinPipe()
		if err != nil {
			return out, nil, err
		}
		go func() {
			_, _ = io.Copy(w, j.Stdin()) // ends when either side does
			_ = w.Close()                // as above
		}()
	}
	runErr := cmd.Run()
	if len(st.Spec.Outputs) == 0 {
		return out, nil, runErr
	}
	m, warnings, err := transfer.Collect(ctx, put, dir, st.Spec.Outputs, &in)
	if err != nil {
		return out, nil, errors.Join(runErr, err)
	}
	for i, w := range warnings {
		warnings[i] = "rank " + strconv.Itoa(rank) + ": " + w
	}
	out.Files, out.Bytes = m.Files(), m.Size()
	if out.Manifest, err = transfer.SaveManifest(put, m); err != nil {
		return out, nil, errors.Join(runErr, err)
	}
	return out, warnings, runErr
}

// emitter makes output of what is written to it.
type emitter struct {
	job    *apitest.Job
	rank   int
	stream work.Stream
	offset int64
}

// Write implements io.Writer.
func (e *emitter) Write(b []byte) (int, error) {
	e.job.Emit(jobs.Output{Rank: e.rank, Attempt: 1, Stream: e.stream, Offset: e.offset, Data: b})
	e.offset += int64(len(b))
	return len(b), nil
}
