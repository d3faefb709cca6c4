package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

// of returns the first job of a kind, and all that it leaves if nothing goes
// wrong.
func of(t *testing.T, kind string, fits func(*order) bool) (*order, *result) {
	t.Helper()
	for _, j := range orders(options{seed: 5, length: time.Minute, jobs: 2000}, hostNames(), "/bin/chaos") {
		if j.kind == kind && (fits == nil || fits(j)) {
			return j, j.ideal()
		}
	}
	t.Fatalf("there is no job of kind %s", kind)
	return nil, nil
}

func (j *order) ideal() *result {
	r := &result{stdout: map[int][]byte{}, stderr: map[int][]byte{}, files: map[int]map[string][]byte{}}
	r.st = jobs.Status{Spec: j.spec, State: j.ends[0].state, ExitCode: j.ends[0].code, Reason: "rank 0 on east-1 (zabcd): " + j.words}
	fill := func(w who) {
		r.stdout[w.rank], r.stderr[w.rank] = j.prog.stdout(w), j.prog.stderr(w)
	}
	if j.spec.Array != nil {
		for id := 1; id <= j.spec.Array.Count(); id++ {
			w := who{rank: id, task: true}
			fill(w)
			r.tasks = append(r.tasks, jobs.TaskStatus{ID: id, Done: true, Code: j.prog.code(w)})
			if name, content := j.prog.file(w); j.prog.Out > 0 {
				r.files[id] = map[string][]byte{name: content}
			}
		}
		return r
	}
	for rank := range j.spec.Max {
		w := who{rank: rank, attempt: 2}
		fill(w)
		code := j.prog.code(w)
		if j.kind == "not found" {
			code = 127
		}
		r.st.Workers = append(r.st.Workers, jobs.WorkerStatus{Rank: rank, Attempt: 2, State: jobs.WorkerEnded, Exit: &work.Exit{Code: code, Cause: work.Exited}})
		if name, content := j.prog.file(w); j.prog.Out > 0 {
			r.files[rank] = map[string][]byte{name: content}
		}
	}
	return r
}

func innocent(string, bool) string { return "" }
func guilty(host string, _ bool) string {
	return host + " was away"
}

func TestIdealResultsAreRight(t *testing.T) {
	for _, k := range append(kinds(), hostile()...) {
		j, r := of(t, k.name, nil)
		before := jobs.Completed
		if j.depend == jobs.AfterNotOK {
			before = jobs.Failed
		}
		if v := j.judge(r, innocent, before); len(v) > 0 {
			t.Errorf("%s: %v", k.name, v)
		}
	}
}

// wrong spoils an ideal result and wants the judge to see it.
func wrong(t *testing.T, kind, want string, fits func(*order) bool, spoil func(*order, *result)) {
	t.Helper()
	j, r := of(t, kind, fits)
	spoil(j, r)
	if v := j.judge(r, innocent, jobs.Completed); len(v) == 0 || !strings.Contains(strings.Join(v, "; "), want) {
		t.Errorf("%s: %v, want %q", kind, v, want)
	}
}

func TestJudgeSeesWhatIsWrong(t *testing.T) {
	wrong(t, "gang", "has not ended", nil, func(_ *order, r *result) { r.st.State = jobs.Running })
	wrong(t, "gang", "ended FAILED with 3", nil, func(_ *order, r *result) { r.st.State, r.st.ExitCode = jobs.Failed, 3 })
	wrong(t, "gang", "bytes, want", nil, func(_ *order, r *result) { r.stdout[0] = r.stdout[0][:len(r.stdout[0])-1] })
	wrong(t, "gang", "from byte 0 on", nil, func(_ *order, r *result) { r.stdout[0] = append([]byte("x"), r.stdout[0]...) })
	wrong(t, "gang", "stdout", nil, func(j *order, r *result) { r.stdout[0] = j.prog.stdout(who{rank: 0, attempt: 1}) })
	wrong(t, "gang", "is lost", nil, func(_ *order, r *result) { r.st.Workers[0].State = jobs.WorkerLost })
	wrong(t, "malleable", "0 ranks ended", nil, func(_ *order, r *result) {
		for i := range r.st.Workers {
			r.st.Workers[i] = jobs.WorkerStatus{Rank: i, State: jobs.WorkerWanted}
			r.stdout[i], r.stderr[i] = nil, nil
		}
	})
	wrong(t, "malleable", "ended NODE_FAIL", nil, func(_ *order, r *result) { r.st.State, r.st.ExitCode = jobs.NodeFail, 125 })
	wrong(t, "files", "left 0 files", nil, func(_ *order, r *result) { r.files[0] = nil })
	wrong(t, "files", "file out-0", nil, func(_ *order, r *result) { r.files[0]["out-0"][0]++ })
	wrong(t, "array", "task 3: done false", nil, func(_ *order, r *result) { r.tasks[2].Done = false })
	wrong(t, "array", "task 3: stdout", nil, func(_ *order, r *result) { r.stdout[3] = append(r.stdout[3], r.stdout[3]...) })
	wrong(t, "array", "tasks are told", nil, func(_ *order, r *result) { r.tasks = r.tasks[1:] })
	wrong(t, "array", "task 5 left 2 files", func(j *order) bool { return j.prog.Out > 0 }, func(_ *order, r *result) { r.files[5]["out-4"] = r.files[4]["out-4"] })
	wrong(t, "array", "task 4: file out-4: 0 bytes", func(j *order) bool { return j.prog.Out > 0 }, func(_ *order, r *result) { delete(r.files, 4) })
	wrong(t, "codes", "want [FAILED", nil, func(_ *order, r *result) { r.st.ExitCode++ })
	wrong(t, "cancelled", "stdout", nil, func(_ *order, r *result) { r.stdout[0] = []byte("no beginning of it") })
	wrong(t, "malleable", "it warns: node east-1", nil, func(_ *order, r *result) {
		r.st.Warnings = []string{"node east-1 (zabcd) was lost with rank 0"}
	})
	wrong(t, "array", "before its tasks", nil, func(_ *order, r *result) {
		r.st.Warnings = []string{"the worker of rank 2 on east-1 (zabcd) ended with 125 before its tasks were done"}
	})
	wrong(t, "fed", "no warning says so", nil, func(j *order, r *result) {
		r.broken = true
		lines, _ := j.prog.said(who{rank: 0, attempt: 2})
		r.stdout[0] = append(bytes.Join(lines, nil), j.prog.fed([]byte("half"))...)
	})
	wrong(t, "after", "was to start afternotok", func(j *order) bool { return j.depend == jobs.AfterNotOK }, func(*order, *result) {})
	wrong(t, "walltime", "ended COMPLETED", nil, func(_ *order, r *result) { r.st.State, r.st.ExitCode = jobs.Completed, 0 })
}

func TestJudgeSeesLimitsThatDoNotHold(t *testing.T) {
	for kind, word := range map[string]string{"memory hog": "of memory (--mem)", "disk filler": "of disk space (--disk)", "spinner": "(-t)", "fork bomb": "(-t)"} {
		wrong(t, kind, word, nil, func(_ *order, r *result) { r.st.Reason = "rank 0 on east-1 (zabcd) ended with 137" })
		wrong(t, kind, "ended COMPLETED with 0", nil, func(_ *order, r *result) { r.st.State, r.st.ExitCode = jobs.Completed, 0 })
		wrong(t, kind, "stdout", nil, func(_ *order, r *result) { r.stdout[0] = []byte("something else") })
	}
	companied := func(j *order) bool { return j.spec.Max == 2 }
	for _, kind := range []string{"memory hog", "disk filler"} {
		wrong(t, kind, "rank 1 attempt 2 at : stdout", companied, func(_ *order, r *result) { r.stdout[1] = nil })
		wrong(t, kind, "rank 1 attempt 2 at  ended with 137, want 0", companied, func(_ *order, r *result) { r.st.Workers[1].Exit.Code = 137 })
		wrong(t, kind, "rank 0 attempt 2 at  ended with 0, want 137", companied, func(_ *order, r *result) { r.st.Workers[0].Exit.Code = 0 })
	}
	grow := func(_ *order, r *result) {
		r.stdout[0] = append(bytes.TrimSuffix(r.stdout[0], []byte(bombRefused+"\n")), bombGrew+"\n"...)
	}
	wrong(t, "fork bomb", bombGrew, nil, grow)
	j, r := of(t, "fork bomb", nil)
	grow(j, r)
	r.boundless = true
	if v := j.judge(r, innocent, ""); len(v) > 0 {
		t.Errorf("where nothing bounds processes: %v", v)
	}
}

func TestJudgeExcusesLostNodes(t *testing.T) {
	j, r := of(t, "gang", nil)
	r.st.State, r.st.ExitCode, r.st.Reason = jobs.NodeFail, jobs.CodeZorilla, "node east-1 (zabcd) was lost with rank 0"
	r.stdout[0] = r.stdout[0][:10]
	r.st.Warnings = []string{"attempt 1: node east-1 (zabcd) was lost with rank 0: trying again"}
	if v := j.judge(r, guilty, ""); len(v) > 0 {
		t.Error(v)
	}
	if v := j.judge(r, innocent, ""); len(v) != 2 || !strings.Contains(v[0], "no node was away") || !strings.Contains(v[1], "no node was away") {
		t.Error(v)
	}
	r.stdout[0] = []byte("mixed up")
	if v := j.judge(r, guilty, ""); len(v) != 1 {
		t.Error(v)
	}
}

func TestExcuses(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	a := newAbsences()
	note := func(host string, why deed, from, to float64) { a.begin(host, why, at(from))(at(to)) }
	excused := func(origin, host string, from, to float64) bool {
		return a.excuse(&jobs.Status{ID: "aaaaa@zbbbb", Submitted: at(from), Ended: at(to)}, origin, host, true) != ""
	}
	note("east-1", deedKill, 10, 13)
	if excused("west-1", "east-1", 0, 20) {
		t.Error("three seconds excuse a loss")
	}
	note("east-1", deedPause, 15, 19)
	if !excused("west-1", "east-1", 0, 30) || excused("west-1", "east-1", 0, 60) || excused("west-1", "east-1", 0, 12) || excused("west-1", "east-1", 20, 30) {
		t.Error("nine seconds with a short break must excuse what was lost then, and only that")
	}
	note("west-1", deedCut, 100, 112)
	if !excused("west-1", "east-2", 90, 120) || excused("north-1", "east-2", 90, 120) {
		t.Error("a cable of the origin excuses its jobs only")
	}
	note("west-1", deedPause, 200, 212)
	note("west-1", deedKill, 250, 270)
	if excused("west-1", "east-2", 190, 280) {
		t.Error("an origin that was away may not lose ranks of others")
	}
	note("west-2", deedStop, 300, 330)
	if excused("north-1", "west-2", 290, 340) {
		t.Error("a node that was stopped is waited for")
	}
	note("north-1", deedKill, 299, 303)
	if !excused("north-1", "west-2", 290, 340) {
		t.Error("its goodbye was not heard")
	}
	note("west-2", deedCrash, 400, 401)
	if !excused("north-1", "west-2", 390, 420) {
		t.Error("a power failure takes workers along")
	}
	a.supervisorKilled("aaaaa@zbbbb")
	if !excused("north-1", "north-1", 500, 501) {
		t.Error("a killed supervisor takes its worker along")
	}
}
