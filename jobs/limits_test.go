package jobs

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/hours"
	"zorilla/jobs/internal/jobtest"
	"zorilla/vicinity"
)

func TestLimitsChange(t *testing.T) {
	nights, _ := hours.Parse("mon-fri 19:00-07:00, sat-sun")
	var l Limits
	for _, step := range []struct {
		change string
		want   Limits
		bad    string
	}{
		{change: "max-jobs=2", want: Limits{MaxJobs: 2}},
		{change: "max-jobs=0", bad: "want a number from 1, or none"},
		{change: "max-jobs+=1", bad: "only allow, deny and expose can be changed with +="},
		{change: "max-jobs", bad: "want NAME=VALUE"},
		{change: "=3", bad: "there are max-jobs"},
		{change: "colour=red", bad: "there are max-jobs"},
		{change: "max-jobs=none", want: Limits{}},
		{change: "paused=yes", want: Limits{Paused: true}},
		{change: "paused=perhaps", bad: "want yes or no"},
		{change: "paused=no", want: Limits{}},
		{change: "max-workers-per-job=4", want: Limits{MaxWorkersPerJob: 4}},
		{change: "max-workers-per-job=none", want: Limits{}},
		{change: "deny=zeb2a, noisy,noisy", want: Limits{Deny: []string{"zeb2a", "noisy"}}},
		{change: "deny+=10.1.0.0/16,noisy", want: Limits{Deny: []string{"zeb2a", "noisy", "10.1.0.0/16"}}},
		{change: "deny-=quiet", bad: "is not in the list"},
		{change: "deny+=10.1.0.0/99", bad: "this is no network"},
		{change: "deny+=" + strings.Repeat("x", 65), bad: "at most 64 bytes"},
		{change: "deny-=zeb2a,noisy", want: Limits{Deny: []string{"10.1.0.0/16"}}},
		{change: "allow+=none", want: Limits{Allow: []string{"none"}, Deny: []string{"10.1.0.0/16"}}},
		{change: "deny=none", want: Limits{Allow: []string{"none"}}},
		{change: "allow=", want: Limits{}},
		{change: "expose+=/data,/scratch/:rw", want: Limits{Expose: []string{"/data:ro", "/scratch:rw"}}},
		{change: "expose+=/data:rw,/b", want: Limits{Expose: []string{"/data:rw", "/scratch:rw", "/b:ro"}}},
		{change: "expose-=/data,/b:ro", want: Limits{Expose: []string{"/scratch:rw"}}},
		{change: "expose-=/data", bad: "is not in the list"},
		{change: "expose+=data", bad: "want an absolute path"},
		{change: "expose=/a,/a:rw", bad: "it is there twice"},
		{change: "network=all", bad: "want none, job or host"},
		{change: "mounts=all", bad: "want own, own:rw or exposed"},
		{change: "mounts=exposed", want: Limits{Expose: []string{"/scratch:rw"}, Mounts: "exposed"}},
		{change: "expose=none", want: Limits{Mounts: "exposed"}},
		{change: "upload-limit=10M", want: Limits{Mounts: "exposed", UploadLimit: 10 << 20}},
		{change: "upload-limit=0", bad: "want a size"},
		{change: "upload-limit=63K", bad: "want none, or 64 KiB a second or more"},
		{change: "upload-limit=none", want: Limits{Mounts: "exposed"}},
		{change: "max-kept=20G", want: Limits{Mounts: "exposed", MaxKept: 20 << 30}},
		{change: "max-kept=lots", bad: "want a size"},
		{change: "max-kept=0", want: Limits{Mounts: "exposed", MaxKept: KeepNone}},
		{change: "max-kept=none", want: Limits{Mounts: "exposed", MaxKept: math.MaxInt64}},
		{change: "max-kept=10G", want: Limits{Mounts: "exposed", MaxKept: 10 << 30}},
		{change: "hours=sometimes", bad: `"sometimes" is no day`},
		{change: "hours=mon-fri 19:00-7:00, sat-sun", want: Limits{Mounts: "exposed", MaxKept: 10 << 30, TimeLimits: TimeLimits{Hours: nights}}},
		{change: "after-hours=kill", bad: "want finish or end"},
		{change: "after-hours=end", want: Limits{Mounts: "exposed", MaxKept: 10 << 30, TimeLimits: TimeLimits{Hours: nights, AfterHours: HoursEnd}}},
		{change: "hours=none", want: Limits{Mounts: "exposed", MaxKept: 10 << 30, TimeLimits: TimeLimits{AfterHours: HoursEnd}}},
		{change: "after-hours=finish", want: Limits{Mounts: "exposed", MaxKept: 10 << 30}},
		{change: "max-walltime=soon", bad: "want a time"},
		{change: "max-walltime=400d", bad: "want 1s to"},
		{change: "max-walltime=8h", want: Limits{Mounts: "exposed", MaxKept: 10 << 30, TimeLimits: TimeLimits{MaxWalltime: codec.Duration(8 * time.Hour)}}},
		{change: "max-walltime=none", want: Limits{Mounts: "exposed", MaxKept: 10 << 30}},
	} {
		before := l
		err := l.Change(step.change)
		switch {
		case step.bad != "":
			if err == nil || !strings.Contains(err.Error(), step.bad) || !reflect.DeepEqual(l, before) {
				t.Fatalf("%s: %v, %+v", step.change, err, l)
			}
		case err != nil:
			t.Fatalf("%s: %v", step.change, err)
		default:
			if len(l.Allow)+len(step.want.Allow) == 0 {
				l.Allow = nil
			}
			if len(l.Expose)+len(step.want.Expose) == 0 {
				l.Expose = nil
			}
			if len(l.Deny)+len(step.want.Deny) == 0 {
				l.Deny = nil
			}
			if !reflect.DeepEqual(l, step.want) {
				t.Fatalf("%s: got %+v", step.change, l)
			}
		}
	}
}

func TestLimitsAdmit(t *testing.T) {
	id := jobtest.Node(40)
	here := vicinity.Member{ID: id, Name: "noisy", Addrs: []string{"10.1.2.3:5444", "[fd00::1]:5444"}}
	unknown := vicinity.Member{ID: id, Addrs: here.Addrs}
	for _, c := range []struct {
		allow, deny   string
		here, unknown bool
	}{
		{"", "", true, true},
		{"", "noisy", false, false}, // who knows what its name is?
		{"", "quiet", true, false},
		{"", id.Short(), false, false},
		{"", string(id), false, false},
		{"", string(jobtest.Node(41)), true, true},
		{"", "zab", true, false}, // too short for an ID
		{"", "10.1.0.0/16", false, false},
		{"", "10.2.0.0/16", true, true},
		{"", "fd00::/8", false, false},
		{"", "10.1.2.3", false, false},
		{"noisy", "", true, false},
		{"quiet", "", false, false},
		{string(id), "", true, true},
		{"10.0.0.0/8", "", true, true},
		{"192.168.0.0/16,quiet", "", false, false},
		{"10.0.0.0/8", "noisy", false, false},
	} {
		var l Limits
		for _, change := range []string{"allow=" + c.allow, "deny=" + c.deny} {
			if err := l.Change(change); err != nil {
				t.Fatal(err)
			}
		}
		if l.Admits(here) != c.here || l.Admits(unknown) != c.unknown {
			t.Errorf("allow %q, deny %q: %v, and %v while it is not known", c.allow, c.deny, l.Admits(here), l.Admits(unknown))
		}
	}
}

// FuzzLimits makes any change: what comes out can be kept and read again.
func FuzzLimits(f *testing.F) {
	for _, s := range []string{"max-jobs=2", "deny+=a,10.0.0.0/8", "allow-=b", "paused=yes", "allow=none", "deny=::1/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, change string) {
		l := Limits{MaxJobs: 3, Allow: []string{"b"}}
		if l.Change(change) == nil && l.Validate() != nil {
			t.Fatalf("%q leads to %+v, which is not valid", change, l)
		}
		l.Admits(vicinity.Member{ID: jobtest.Node(1), Name: "b", Addrs: []string{"10.0.0.1:1", "x"}})
	})
}
