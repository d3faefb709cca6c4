package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/described"
	"zorilla/jobs/work"
)

const (
	maxWorkerRows = 500
	maxArrayRows  = 20 // workers of an array, one like the other
)

// jobView is everything that a job's page shows but its output.
type jobView struct {
	Build   string `json:"build"`
	Now     string `json:"now"`
	ID      string `json:"id"`
	Title   string `json:"title"`
	Command string `json:"command"`
	State   string `json:"state"`
	Tone    string `json:"tone"`
	Reason  string `json:"reason"`
	Exit    string `json:"exit"`
	Final   bool   `json:"final"`
	Fresh   bool   `json:"fresh"` // not an old record of a job whose origin is away
	jobTimes
	jobMore
	Facts      []counter   `json:"facts"`
	Steps      []step      `json:"steps"`
	Line       timeline    `json:"line"`
	Workers    []workerRow `json:"workers"`
	Tasks      tasksView   `json:"tasks"`
	Unit       string      `json:"unit"` // what output is told apart by
	Progress   string      `json:"progress"`
	WorkerNote string      `json:"workerNote"`
	NoWorkers  bool        `json:"noWorkers"`
	Rounds     []roundRow  `json:"rounds"`
	NoRounds   bool        `json:"noRounds"`
	Ripple     rippleView  `json:"ripple"`
	Why        whyView     `json:"why"`
	Warnings   []counter   `json:"warnings"`
	NoWarnings bool        `json:"noWarnings"`
}

type jobTimes struct {
	Submitted  stamp  `json:"submitted"`
	Waited     period `json:"waited"`
	Ran        period `json:"ran"`
	NotStarted bool   `json:"notStarted"`
}

type step struct {
	Key  string `json:"key"`
	Text string `json:"text"`
	Tone string `json:"tone"` // "done", "now", "todo", or how it ended
}

// timeline is the job's life as a bar of 1000 units.
type timeline struct {
	RunX  float64 `json:"runX"`
	WaitW float64 `json:"waitW"`
	RunW  float64 `json:"runW"`
	Ticks []tick  `json:"ticks"`
	Files int     `json:"files"` // how much of the files that are on their way is there, of 1000
	Still bool    `json:"still"` // no files are on their way
}

type tick struct {
	Key   string  `json:"key"`
	X     float64 `json:"x"`
	Title string  `json:"title"`
}

type workerRow struct {
	Key     string `json:"key"`
	Rank    string `json:"rank"`
	Href    string `json:"href"`
	Pick    string `json:"pick"` // the rank whose output is shown; "" = all
	Node    string `json:"node"`
	At      string `json:"at"` // the node's page
	Short   string `json:"short"`
	RTT     string `json:"rtt"`
	Far     int    `json:"far"`
	State   string `json:"state"`
	Tone    string `json:"tone"`
	Exit    string `json:"exit"`
	Why     string `json:"why"` // it ended so
	Title   string `json:"title"`
	Out     string `json:"out"`
	Err     string `json:"err"`
	Attempt string `json:"attempt"`
}

type roundRow struct {
	Key      string `json:"key"`
	Radius   string `json:"radius"`
	At       stamp  `json:"at"`
	Reached  string `json:"reached"`
	Offers   string `json:"offers"`
	Declines string `json:"declines"`
	Messages string `json:"messages"`
	Twice    string `json:"twice"`
	Cost     string `json:"cost"` // all of it, in words
}

// job turns a status, and what Explain says of it, into a view. Of an array's
// failed tasks it lists some from a place on.
func (s *views) job(ctx context.Context, st jobs.Status, failed int) jobView {
	now, short := time.Now(), st.Summary()
	v := jobView{
		Build: s.build, Now: iso(now), ID: label(st.ID.Short(), nameLimit), Title: jobName(&st.Spec), Command: command(&st.Spec, 2000),
		State: stateName(st.State), Tone: stateTone(st.State), Reason: label(st.Reason, textLimit), Final: st.State.Final(), Fresh: !st.LastKnown,
		jobTimes: jobTimes{since(st.Submitted, now), between(st.Submitted, cmp.Or(st.Started, st.Ended), now),
			between(st.Started, st.Ended, now), st.Started.IsZero()},
		jobMore: s.more(ctx, &st), Facts: facts(&st), Steps: steps(&st), Line: drawLine(&st, now), Progress: progress(&short),
		NoRounds: len(st.Rounds) == 0,
	}
	if v.Final {
		v.Exit = "exit code " + strconv.Itoa(st.ExitCode)
	}
	if v.Command == v.Title {
		v.Command = ""
	}
	limit := maxWorkerRows
	if v.Unit = "Rank"; st.Array != nil {
		limit, v.Unit = maxArrayRows, "Task"
	}
	v.Tasks = s.tasks(ctx, &st, failed)
	v.Workers, v.WorkerNote = describeWorkers(&st.Spec, st.Workers, limit)
	if st.Array != nil { // whose output is told apart by task
		for i := range v.Workers {
			v.Workers[i].Href, v.Workers[i].Pick = "?", ""
		}
	}
	v.NoWorkers = len(v.Workers) == 0
	for _, r := range slices.Backward(st.Rounds[max(0, len(st.Rounds)-64):]) {
		v.Rounds = append(v.Rounds, describeRound(r, now))
	}
	warnings := st.Warnings
	for _, d := range st.AllDamage() {
		warnings = append([]string{"damaged: " + d}, warnings...)
	}
	v.NoWarnings = len(warnings) == 0
	for i, w := range warnings[:min(len(warnings), 100)] {
		v.Warnings = append(v.Warnings, counter{Key: strconv.Itoa(i), Value: label(w, textLimit)})
	}
	// Without an explanation, or without the map, the rest is still of use.
	var answers []jobs.NodeAnswer
	if ex, err := s.service.Explain(ctx, string(st.ID)); err == nil {
		v.Why, answers = explain(&ex, now), ex.Nodes
	}
	if self, nodes, err := s.members(ctx); err == nil {
		nodes = nearestFirst(self, nodes)
		v.Ripple = drawRipple(nodes, s.atlas.place(nodes, now), &st, answers)
	}
	return v
}

func facts(st *jobs.Status) []counter {
	s := &st.Spec
	list := []counter{{"Origin", label(st.Origin.Short(), nameLimit)}, {"Workers", workersOf(s)}}
	if len(s.Groups) == 0 { // else each group has its own, and links say where they are
		list = append(list, counter{"Slots each", strconv.Itoa(s.Slots)}, counter{"Strategy", cmp.Or(label(s.Strategy, nameLimit), "nearest")})
	}
	if st.Asked > 0 {
		list = append(list, counter{"Asked for", count(int64(st.Asked))})
	}
	list = append(list, spares(st)...)
	if a := st.Array; a != nil {
		list = append(list, counter{"Tasks", count(int64(a.Tasks))},
			counter{"Tasks done", count(int64(a.Done))}, counter{"Tasks failed", count(int64(a.Failed))})
	}
	if s.Memory > 0 {
		list = append(list, counter{"Memory each", units.Bytes(s.Memory)})
	}
	if s.MaxOutput > 0 {
		list = append(list, counter{"Output each, at most", units.Bytes(s.MaxOutput)})
	}
	if s.Walltime > 0 {
		list = append(list, counter{"Walltime", span(time.Duration(s.Walltime))})
	}
	if s.OnEnd != "" {
		list = append(list, counter{"Command at its end", label(st.CommandAtEnd(), textLimit)})
	}
	list = append(list, times(st)...)
	if s.GiveUp > 0 {
		list = append(list, counter{"Gives up after", span(time.Duration(s.GiveUp))})
	}
	if s.Priority != 0 {
		list = append(list, counter{"Priority", strconv.Itoa(s.Priority)})
	}
	if s.Replicas > 1 {
		list = append(list, counter{"Copies of each", strconv.Itoa(s.Replicas)})
	}
	if s.MaxRTT > 0 {
		list = append(list, counter{"Nodes within", span(time.Duration(s.MaxRTT))})
	}
	if s.Single() {
		list = append(list, counter{"Workers at a node", "1"})
	}
	list = append(list, means(s)...)
	list = append(list, groupFacts(st)...)
	if st.Worst != nil {
		list = append(list, counter{"Worst pair", st.Worst.String()})
	}
	if st.Staged.Total > 0 {
		list = append(list, counter{"Inputs",
			fmt.Sprintf("%s; %s moved, %s cached", units.Bytes(st.Staged.Total), units.Bytes(st.Staged.Fetched), units.Bytes(st.Staged.Cached))})
	}
	files, bytes := 0, int64(0)
	for _, o := range st.Outputs {
		files += o.Files
		bytes += o.Bytes
	}
	if files > 0 {
		list = append(list, counter{"Outputs", fmt.Sprintf("%s, %s", plural(files, "file", "files"), units.Bytes(bytes))})
	}
	return list
}

// means are what workers of a job find beside slots and memory.
func means(s *jobs.Spec) (list []counter) {
	switch s.Net {
	case jobs.NetNone:
		list = append(list, counter{"Network", "none"})
	case jobs.NetJob:
		list = append(list, counter{"Network", "the job's nodes"})
	}
	if s.MPI {
		list = append(list, counter{"Program", "MPI"})
	}
	if s.ShareWork {
		list = append(list, counter{"Work directory", "one at each node"})
	}
	if len(s.Mounts) > 0 {
		list = append(list, counter{"Asks for", label(strings.Join(s.Mounts, ", "), textLimit)})
	}
	return list
}

// steps is the way of a job, with the states that it is known to have passed.
func steps(st *jobs.Status) []step {
	way := []jobs.State{jobs.Pending, jobs.Staging, jobs.Running, jobs.Collecting, jobs.Completed}
	over := st.State.Final()
	if over {
		way[len(way)-1] = st.State
	}
	collected := slices.ContainsFunc(st.Outputs, func(o jobs.RankOutput) bool { return o.Files > 0 })
	placed := slices.ContainsFunc(st.Workers, func(w jobs.WorkerStatus) bool { return w.Node != "" })
	passed := []bool{true, placed || !st.Started.IsZero(), !st.Started.IsZero(), collected}
	reached := slices.Index(way, st.State)
	var out []step
	for i, s := range way {
		e := step{Key: strconv.Itoa(i), Text: strings.ToLower(stateName(s)), Tone: "todo"}
		switch {
		case i == reached && over:
			e.Tone = stateTone(s)
		case i == reached:
			e.Tone = "now"
		case i < reached && (!over || passed[i]):
			e.Tone = "done"
		}
		out = append(out, e)
	}
	return out
}

func drawLine(st *jobs.Status, now time.Time) timeline {
	end := cmp.Or(st.Ended, now)
	total := max(end.Sub(st.Submitted), time.Millisecond)
	x := func(t time.Time) float64 {
		return 1000 * min(1, max(0, float64(t.Sub(st.Submitted))/float64(total)))
	}
	start := cmp.Or(st.Started, end)
	l := timeline{RunX: num(x(start)), WaitW: num(x(start)), RunW: num(1000 - x(start)), Still: st.Moving == nil}
	if m := st.Moving; m != nil {
		l.Files = int(1000 * min(1, max(0, float64(m.Done)/float64(max(m.Total, 1)))))
	}
	for _, r := range st.Rounds[max(0, len(st.Rounds)-64):] {
		l.Ticks = append(l.Ticks, tick{Key: strconv.Itoa(r.Number), X: num(x(r.At)), Title: fmt.Sprintf("flood %d, radius %d", r.Number, r.Radius)})
	}
	return l
}

// describeWorkers lists the workers that have, or had, a node.
func describeWorkers(spec *jobs.Spec, workers []jobs.WorkerStatus, limit int) (rows []workerRow, note string) {
	wanted, more := 0, 0
	for i := range workers {
		switch {
		case workers[i].State == jobs.WorkerWanted:
			wanted++
		case len(rows) == limit:
			more++
		default:
			rows = append(rows, describeWorker(spec, &workers[i]))
		}
	}
	if wanted > 0 && len(rows) > 0 {
		note = plural(wanted, "worker has", "workers have") + " no node yet. "
	}
	if more > 0 {
		note += count(int64(more)) + " more: zorilla status lists all."
	}
	return rows, note
}

func describeWorker(spec *jobs.Spec, w *jobs.WorkerStatus) workerRow {
	rank := strconv.Itoa(w.Rank)
	key, name := rank, label(described.Rank(spec, w.Rank), textLimit)
	if w.Replica > 0 {
		key, name = fmt.Sprintf("%d-%d", w.Rank, w.Replica), fmt.Sprintf("%d, copy %d", w.Rank, w.Replica)
	}
	v := workerRow{
		Key: key, Rank: name, Href: "?rank=" + rank, Pick: rank, Node: cmp.Or(label(w.Name, nameLimit), w.Node.Short(), "–"), Short: label(w.Node.Short(), 5),
		RTT: latency(time.Duration(w.RTT)), Far: far(time.Duration(w.RTT)), State: label(string(w.State), 20), Tone: "cancelled",
		Out: units.Bytes(w.Stdout), Err: units.Bytes(w.Stderr),
	}
	if w.Node.Valid() {
		v.At = "/nodes/" + string(w.Node)
	}
	switch w.State {
	case jobs.WorkerWanted, jobs.WorkerPreparing, jobs.WorkerReady, jobs.WorkerRunning, jobs.WorkerLost:
		v.Tone = string(w.State)
	case jobs.WorkerEnded:
		v.Tone = "completed"
	}
	v.Attempt = attemptText(spec, w)
	if e := w.Exit; e != nil {
		v.Exit = strconv.Itoa(e.Code)
		switch {
		case e.Code != 0 && e.Cause == work.Stopped:
			v.Tone = "cancelled"
		case e.Code != 0:
			v.Tone = "failed"
		}
		if e.Cause != work.Exited && e.Cause != "" {
			v.Exit += " · " + label(string(e.Cause), 20)
		}
		v.Title = label(e.Detail, textLimit)
		v.Why = v.Title
		if !e.Started.IsZero() {
			v.Title = strings.TrimPrefix(fmt.Sprintf("%s · ran %s, CPU %.1f s", v.Title, span(e.Ended.Sub(e.Started)), e.CPU), " · ")
			if e.Peak > 0 {
				v.Title += ", peak " + units.Bytes(e.Peak)
			}
			if e.Read > 0 || e.Written > 0 {
				v.Title += fmt.Sprintf(", read %s from disks and wrote %s", units.Bytes(e.Read), units.Bytes(e.Written))
			}
		}
	}
	return v
}

func describeRound(r jobs.Round, now time.Time) roundRow {
	v := roundRow{
		Key: strconv.Itoa(r.Number), Radius: strconv.Itoa(r.Radius), At: since(r.At, now), Reached: count(int64(r.Reached)),
		Offers:   fmt.Sprintf("%d (%s)", r.Offers, plural(r.Workers, "worker", "workers")),
		Declines: count(int64(r.Declines)), Messages: count(int64(r.Messages)),
		Cost: fmt.Sprintf("%s wanted; %s, %s in all", plural(r.Wanted, "worker", "workers"), plural(r.Messages, "copy", "copies"), units.Bytes(int64(r.Bytes))),
	}
	if r.Duplicates > 0 {
		v.Twice = count(int64(r.Duplicates)) + " twice"
		v.Cost += fmt.Sprintf("; %s had come before, or got lost", count(int64(r.Duplicates)))
	}
	if r.Extended > 0 {
		v.Radius += " → " + strconv.Itoa(max(r.Hops, r.Radius))
		v.Cost += "; carried on beyond " + plural(r.Extended, "node", "nodes")
	}
	return v
}

// blankJob are the empty rows that the browser copies.
var blankJob = struct {
	Typed   typed
	File    fileRow
	Env     variable
	Step    step
	Tick    tick
	Counter counter
	Reason  reason
	Answer  answerRow
	Worker  workerRow
	Circle  circle
	Dot     dot
	Round   roundRow
	Task    taskRow
}{}
