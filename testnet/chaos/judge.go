package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

// result is what an ended job left: by rank, or by task.
type result struct {
	st     jobs.Status
	tasks  []jobs.TaskStatus
	stdout map[int][]byte
	stderr map[int][]byte
	files  map[int]map[string][]byte // by rank, or task
	broken bool                      // it was not fed all of its standard input
	// boundless tells that nothing bounds how many processes workers have.
	boundless bool
}

// verdict collects what is wrong with a job.
type verdict []string

func (v *verdict) add(format string, args ...any) { *v = append(*v, fmt.Sprintf(format, args...)) }

// excuses reports why a job may have lost ranks at a host, at its end or at any time.
type excuses func(host string, atEnd bool) string

// judge says what is wrong with how a job ended. before is how the job ended that
// it waited for.
func (j *order) judge(r *result, excuse excuses, before jobs.State) (v verdict) {
	st := &r.st
	if !st.State.Final() {
		v.add("it has not ended: %s, %s", st.State, st.Reason)
		return v
	}
	j.warnings(st, excuse, &v)
	got, right := end{st.State, st.ExitCode}, false
	for _, e := range j.ends {
		right = right || got == e
	}
	switch {
	case j.after >= 0 && !j.freed(before):
		if got != (end{jobs.Failed, jobs.CodeZorilla}) || !strings.HasPrefix(st.Reason, "was not started: ") {
			v.add("it ended %v (%s), though it was to start %s of a job that ended %s", got, st.Reason, j.depend, before)
		}
		j.nothing(r, &v)
	case right:
		if j.words != "" && got.state != jobs.Cancelled && !strings.Contains(st.Reason, j.words) {
			v.add("it ended %v (%s), want %q", got, st.Reason, j.words)
		}
		j.content(r, &v)
	case got == end{jobs.NodeFail, jobs.CodeZorilla} && j.lossy:
		if host := hostIn(st.Reason); host == "" || excuse(host, true) == "" {
			v.add("it ended %v (%s), but no node was away for longer than jobs wait", got, st.Reason)
		}
		j.beginnings(r, &v)
	default:
		v.add("it ended %v (%s), want %v", got, st.Reason, j.ends)
	}
	return v
}

// freed reports whether a job that waited for another one, which ended so, may
// run.
func (j *order) freed(before jobs.State) bool {
	switch j.depend {
	case jobs.AfterOK:
		return before == jobs.Completed
	case jobs.AfterNotOK:
		return before != jobs.Completed
	}
	return true
}

// warnings checks that ranks that ran again, or elsewhere, had a reason to: workers
// outlive their nodes.
func (j *order) warnings(st *jobs.Status, excuse excuses, v *verdict) {
	for _, text := range st.Warnings {
		switch host := hostIn(text); {
		case strings.HasSuffix(text, fmt.Sprintf("ended with %d: trying again", j.prog.Flaky)), strings.Contains(text, "standard input may be incomplete"):
		case host == "" || strings.Contains(text, "before its tasks were done") || strings.Contains(text, " ended with "):
			v.add("it warns: %s", text)
		case excuse(host, false) == "":
			v.add("it warns: %s; but no node was away for longer than jobs wait", text)
		}
	}
}

// hostIn returns the host whose loss a reason or warning tells.
func hostIn(text string) string {
	if m := regexp.MustCompile(`([a-z]+-[0-9]+) \(z`).FindStringSubmatch(text); m != nil { // with its ID
		return m[1]
	}
	return ""
}

// nothing checks that a job that was not started left nothing.
func (j *order) nothing(r *result, v *verdict) {
	for rank := range r.stdout {
		v.add("rank %d wrote, though the job was not started", rank)
	}
}

// content checks all that a job left that ended as it should.
func (j *order) content(r *result, v *verdict) {
	switch {
	case j.spec.Array != nil:
		j.taskContent(r, v)
		return
	case r.st.State == jobs.Cancelled || r.st.State == jobs.Timeout:
		j.beginnings(r, v)
		return
	}
	ended := 0
	for _, k := range r.st.Workers {
		w := ranked(&k)
		switch {
		case k.State == jobs.WorkerWanted && k.Attempt == 0:
			if len(r.stdout[k.Rank])+len(r.stderr[k.Rank]) > 0 {
				v.add("rank %d never ran, but wrote", k.Rank)
			}
		case k.State == jobs.WorkerEnded && k.Exit != nil && k.Exit.Cause == work.Stopped && r.st.State == jobs.Failed:
			ended++
			j.beginning(w, r, v)
		case k.State == jobs.WorkerEnded && k.Exit != nil:
			ended++
			j.whole(w, k.Exit.Code, r, v)
		case r.st.State == jobs.Failed && j.spec.KillOnBadExit == nil: // given up because another one failed
			j.beginning(w, r, v)
		default:
			v.add("%v is %s, though the job ended %s", w, k.State, r.st.State)
		}
	}
	if r.st.State == jobs.Completed && ended < j.spec.Min {
		v.add("%d ranks ended, want %d or more", ended, j.spec.Min)
	}
	told := slices.ContainsFunc(r.st.Warnings, func(w string) bool { return strings.Contains(w, "standard input may be incomplete") })
	if j.prog.Stdin > 0 && !told && r.broken && !bytes.HasSuffix(r.stdout[0], j.prog.fed(j.prog.feed())) {
		v.add("it was not fed all of its input, and no warning says so")
	}
	j.outputFiles(r, v)
}

// whole checks a rank that came to its own end.
func (j *order) whole(w who, code int, r *result, v *verdict) {
	if j.kind == "not found" {
		if code != 127 {
			v.add("%v ended with %d, want 127", w, code)
		}
		return
	}
	if want := j.prog.code(w); code != want {
		v.add("%v ended with %d, want %d", w, code, want)
	}
	stdout := r.stdout[w.rank]
	if r.broken && j.prog.reads(w) { // it told what it got, which nobody else knows
		end := bytes.LastIndexByte(bytes.TrimSuffix(stdout, []byte("\n")), '\n') + 1
		stdout = append(bytes.Clone(stdout[:end]), j.prog.fed(j.prog.feed())...)
	}
	same(fmt.Sprint(w, ": stdout"), stdout, j.prog.stdout(w), v)
	same(fmt.Sprint(w, ": stderr"), r.stderr[w.rank], j.prog.stderr(w), v)
}

// beginnings checks that what is there of each rank is right as far as it goes.
func (j *order) beginnings(r *result, v *verdict) {
	for _, k := range r.st.Workers {
		j.beginning(ranked(&k), r, v)
	}
}

func (j *order) beginning(w who, r *result, v *verdict) {
	stdout := r.stdout[w.rank]
	if j.prog.Hostile == wayBomb && r.boundless {
		stdout = bytes.TrimSuffix(stdout, []byte(bombGrew+"\n"))
	}
	for stream, text := range map[string][2][]byte{"stdout": {stdout, j.prog.stdout(w)}, "stderr": {r.stderr[w.rank], j.prog.stderr(w)}} {
		if !bytes.HasPrefix(text[1], text[0]) && !(r.broken && j.prog.reads(w)) {
			same(fmt.Sprint(w, ": ", stream), text[0], text[1][:min(len(text[0]), len(text[1]))], v)
		}
	}
}

// outputFiles checks that each rank that ended by itself left its file.
func (j *order) outputFiles(r *result, v *verdict) {
	if j.prog.Out == 0 {
		return
	}
	for _, k := range r.st.Workers {
		if k.State != jobs.WorkerEnded {
			continue
		}
		name, want := j.prog.file(ranked(&k))
		if len(r.files[k.Rank]) != 1 {
			v.add("rank %d left %d files, want 1", k.Rank, len(r.files[k.Rank]))
		}
		same(fmt.Sprintf("rank %d: file %s", k.Rank, name), r.files[k.Rank][name], want, v)
	}
}

// taskContent checks that each task of an array counts once, with all that it
// wrote.
func (j *order) taskContent(r *result, v *verdict) {
	n := j.spec.Array.Count()
	if len(r.tasks) != n {
		v.add("%d tasks are told, want %d", len(r.tasks), n)
	}
	for _, t := range r.tasks {
		w := who{rank: t.ID, task: true}
		if !t.Done || t.Code != j.prog.code(w) {
			v.add("%v: done %t with %d, want %d", w, t.Done, t.Code, j.prog.code(w))
		}
		same(fmt.Sprint(w, ": stdout"), r.stdout[t.ID], j.prog.stdout(w), v)
		same(fmt.Sprint(w, ": stderr"), r.stderr[t.ID], j.prog.stderr(w), v)
	}
	for id := range r.stdout {
		if id < 1 || id > n {
			v.add("there is output of task %d", id)
		}
	}
	if j.prog.Out == 0 {
		return
	}
	for id := range r.files {
		if id < 1 || id > n {
			v.add("there are files of task %d", id)
		}
	}
	for id := 1; id <= n; id++ {
		name, want := j.prog.file(who{rank: id, task: true})
		if files := r.files[id]; len(files) != 1 {
			v.add("task %d left %d files, want %s alone", id, len(files), name)
		}
		same(fmt.Sprintf("task %d: file %s", id, name), r.files[id][name], want, v)
	}
}

// same compares bytes and says where they differ first.
func same(what string, got, want []byte, v *verdict) {
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	v.add("%s: %d bytes, want %d; from byte %d on %.60q, want %.60q", what, len(got), len(want), at, got[at:], want[at:])
}
