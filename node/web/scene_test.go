package web

import (
	"fmt"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/work"
)

// The jobs of the scene that most tests and the pictures use.
const (
	runningJob = "k7f3q@zaaaa"
	waitingJob = "m2wxh@zaaaa"
	failedJob  = "t9pbc@zaaaa"
)

// scene is a busy node among twelve with jobs in several states.
func scene() *fake {
	nodes := network(12)
	f := newFake(nodes)
	done := sample("c4d8e@zaaaa", jobs.Completed, nodes, 8, 2*time.Hour, "./render", "--frames", "1-240", "scene one.blend")
	f.put(done)
	bad := sample(failedJob, jobs.Failed, nodes, 4, 26*time.Minute, "python3", "train.py", "--epochs", "5")
	bad.Reason, bad.ExitCode = "rank 2 ended with 137: killed by SIGKILL, needed more than its 191 MiB", 137
	bad.Workers[2].Exit = &work.Exit{Code: 137, Cause: work.Memory, Detail: "needed more than 191 MiB", Started: bad.Started, Ended: bad.Ended, CPU: 61.3, Peak: 200e6}
	bad.Warnings = []string{"-o 'part-*' matched nothing on rank 2"}
	f.put(bad)
	stopped := sample("p3v6a@zaaaa", jobs.Cancelled, nodes, 2, 14*time.Minute, "sleep", "3600")
	stopped.ExitCode, stopped.Spec.Name = 130, "tea"
	f.put(stopped)
	waiting := sample(waitingJob, jobs.Pending, nodes, 40, 21*time.Second, "mpirun", "./lattice", "--size", "4096")
	waiting.Spec.Name, waiting.Reason = "lattice-4096", "40 workers wanted, 29 offered by 9 nodes; asks again, 4 hops far"
	waiting.Rounds = []jobs.Round{
		{Number: 1, Radius: 1, At: waiting.Submitted, Wait: codec.Duration(time.Second), Wanted: 40, Reached: 4, Offers: 3, Workers: 12, Declines: 1, Messages: 8, Duplicates: 3, Bytes: 2_900, Hops: 1},
		{Number: 2, Radius: 2, At: waiting.Submitted.Add(time.Second), Wait: codec.Duration(2 * time.Second), Wanted: 40, Reached: 8, Offers: 6, Workers: 22, Declines: 2, Messages: 41, Duplicates: 33, Bytes: 14_600, Hops: 2},
		{Number: 3, Radius: 3, At: waiting.Submitted.Add(3 * time.Second), Wait: codec.Duration(4 * time.Second), Wanted: 40, Reached: 12, Offers: 9, Workers: 29, Declines: 3, Messages: 66, Duplicates: 54, Bytes: 23_500, Hops: 3},
		{Number: 4, Radius: 4, At: waiting.Submitted.Add(11 * time.Second), Wait: codec.Duration(16 * time.Second), Wanted: 40, Reached: 12, Offers: 9, Workers: 29, Declines: 3, Messages: 66, Duplicates: 54, Bytes: 23_500, Hops: 3},
	}
	f.put(waiting)
	why := jobs.Explanation{
		ID: waitingJob, State: jobs.Pending, Summary: "Needs 40 slots at the same time; the 12 nodes in reach have 29 free now.", Wanted: 40, Asked: 12, Offered: 9,
		Declined: map[string]int{"owner is at the machine": 2, "memory: 191 MiB wanted, 92 MiB free": 1}, Since: waiting.Submitted, Next: time.Now().Add(90 * time.Second), Rounds: waiting.Rounds,
	}
	for i, n := range nodes {
		a := jobs.NodeAnswer{Node: n.ID, Name: n.Name, RTT: n.RTT, Offered: 3, At: time.Now(), Round: 4, Hops: (i + 3) / 4}
		if i%4 == 3 {
			a.Offered, a.Reason = 0, "owner is at the machine"
		}
		why.Nodes = append(why.Nodes, a)
	}
	f.explain(why)
	f.queue = []jobs.Waiting{
		{Job: "h2nf7@zdddd", Priority: 10, Wanted: 2, Slots: 4, GPUs: 1, Reason: "busy", Since: time.Now().Add(-3 * time.Minute)},
		{Job: waitingJob, Wanted: 11, Slots: 1, Memory: 200e6, Since: waiting.Submitted},
	}
	running := sample(runningJob, jobs.Running, nodes, 6, 34*time.Second, "./nqueens", "14")
	running.Rounds = []jobs.Round{{Number: 1, Radius: 1, At: running.Submitted, Wait: codec.Duration(time.Second), Wanted: 6, Reached: 7, Offers: 6, Workers: 11, Declines: 1, Messages: 31, Duplicates: 24, Bytes: 11_000, Hops: 2, Extended: 2}}
	running.Started = running.Submitted.Add(180 * time.Millisecond)
	f.put(running)
	runs := jobs.Explanation{ID: runningJob, State: jobs.Running, Summary: "Runs on the 6 nearest of the 7 nodes that answered.", Asked: 7, Offered: 6, Declined: map[string]int{"all 4 slots busy": 1}}
	for i, n := range nodes[:7] {
		runs.Nodes = append(runs.Nodes, jobs.NodeAnswer{Node: n.ID, Name: n.Name, RTT: n.RTT, Offered: []int{2, 2, 0, 1, 2, 2, 2}[i], At: time.Now(), Round: 1, Hops: min(i, 1+i/5)})
	}
	runs.Nodes[2].Reason = "all 4 slots busy"
	f.explain(runs)
	for i := range 48 {
		f.print(runningJob, i%6, work.Stdout, fmt.Sprintf("row %2d of 84: %s %d solutions\n", i+1, strings.Repeat("·", 3+i%9), 2000+i*i*7%9973))
		if i%17 == 9 {
			f.print(runningJob, i%6, work.Stderr, "warning: clock went back 3 ms, ignored\n")
		}
	}
	return f
}
