package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"zorilla/testnet/chart"
)

const (
	farmJobs    = 100
	farmClients = 8 // that start one job after the other
	farmLimit   = time.Minute
)

// BenchmarkFarm is what a hundred small jobs that know nothing of each other take on three
// hosts of one network, eight at a time: "zorilla run" by eight clients at once, at nodes of
// root with all of the wall; GNU parallel with ssh to an sshd of each host, with a
// connection for each job and, as few set it up, with one that all share (ControlMaster);
// GNU parallel with nsenter for a remote shell; and, for what users should do instead, one
// job with an array of as many tasks. In the lab of
// testnet/hosts. It needs root, and Debian's packages of the rivals, which it installs.
func BenchmarkFarm(b *testing.B) {
	if os.Geteuid() != 0 {
		leaveOut(b, "it needs root")
	}
	if !inLab(b, twoLans, "BenchmarkFarm", "-out="+*out, "-rounds="+strconv.Itoa(*rounds)) {
		return
	}
	err := chart.Keep(*out, func(r *chart.Results) error {
		s := &starts{hosts: enter(b, twoLans), tallies: map[string]*tally{}}
		s.describe(r)
		s.root = s.nodes(site, 0)
		s.farm(b, r, s.sshds([]string{site + "-1", site + "-2", site + "-3"}))
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// farm runs the jobs in turn by all rivals, and writes how many a second that is.
func (s *starts) farm(b *testing.B, r *chart.Results, ssh string) {
	ours := s.root("run", "-q", "--stdin", "none", "--", "hostname")
	run := strings.Join(append([]string{"env", "ZORILLA_STATE=" + filepath.Join(s.own, first)}, ours.Args...), " ")
	jobs := fmt.Sprintf("seq %d | ", farmJobs)
	hosts := fmt.Sprintf("-S 3/%[1]s-1,3/%[1]s-2,2/%[1]s-3 -N0 hostname", site)
	shared := " -o ControlMaster=auto -o ControlPersist=60 -o ControlPath=" + filepath.Join(s.own, "mux-%h")
	var all []rival
	for _, c := range []struct{ name, line string }{
		{"zorilla", jobs + fmt.Sprintf("xargs -P %d -I{} %s", farmClients, run)},
		{"parallel-ssh", jobs + "parallel --will-cite --ssh '" + ssh + "' " + hosts},
		{"parallel-ssh-shared", jobs + "parallel --will-cite --ssh '" + ssh + shared + "' " + hosts},
		{"parallel-nsenter", jobs + "parallel --will-cite --ssh " + s.agent() + " " + hosts},
		{"array", strings.Replace(run, " run ", fmt.Sprintf(" run -a 1-%d ", farmJobs), 1)},
	} {
		all = append(all, rival{c.name, func() (time.Duration, error) {
			return s.launchWithin(farmLimit, exec.Command("sh", "-c", c.line), farmJobs)
		}})
	}
	b.Run("jobs", func(b *testing.B) {
		for _, v := range all {
			if _, err := v.run(); err != nil {
				b.Fatalf("%s: %v", v.name, err)
			}
		}
		times := compete(b, *rounds, all...)
		fmt.Fprintf(r, "\n%d jobs of one worker, %d at a time; medians of %d rounds or more, all in turn:\n\n| | jobs a second | times as many by zorilla |\n|---|---|---|\n", farmJobs, farmClients, *rounds)
		for i, t := range times {
			fmt.Fprintf(r, "| %s | %.0f | %.2f |\n", all[i].name, farmJobs/median(t).Seconds(), float64(median(t))/float64(median(times[0])))
		}
	})
	fmt.Fprintf(r, "\nLoad at the end: %s.\n", load())
}

// sshds starts one on each of some hosts, and returns the command of a client that need
// not be asked for anything.
func (h *hosts) sshds(names []string) string {
	h.b.Helper()
	key := filepath.Join(h.own, "key")
	if _, err := os.Stat(key); err != nil {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
			h.b.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // it insists on that
		h.b.Fatal(err)
	}
	config := h.write("sshd.conf", fmt.Sprintf("HostKey %[1]s\nAuthorizedKeysFile %[1]s.pub\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nMaxStartups 100\nMaxSessions 100\nSubsystem sftp internal-sftp\n", key), 0o600)
	client := fmt.Sprintf("ssh -i %s -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR", key)
	for _, host := range names {
		h.serve(host, "/usr/sbin/sshd", "-D", "-f", config)
		h.until("sshd of "+host, h.says("", append(strings.Fields(client), host, "true")...))
	}
	return client
}
