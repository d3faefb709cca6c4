package wire_test

import (
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
)

func TestPorts(t *testing.T) {
	for port, good := range map[int]bool{0: true, 1024: true, 20000: true, 65535: true, -1: false, 22: false, 1023: false, 65536: false, 1 << 40: false} {
		s := wire.Start{Job: wiretest.Job, Size: 1, Hosts: []wire.Host{{Node: jobtest.Node(1), Ranks: []int{0}, Port: port}}}
		r := wire.Report{Job: wiretest.Job, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(0, 1), State: jobs.WorkerReady, Port: port}}}
		if err1, err2 := s.Check(), r.Check(); (err1 == nil) != good || (err2 == nil) != good {
			t.Errorf("%d: START %v, report %v", port, err1, err2)
		}
	}
	s := wire.Start{Job: wiretest.Job, Hosts: []wire.Host{{Ranks: []int{1}, Port: 20001}}}
	if p := s.MasterPort(); p != wire.WantedPort(wiretest.Job) || p < 20000 || p > 29999 {
		t.Errorf("rank 0 listens at %d", p)
	}
}
