package node

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
)

func TestOwnerIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "owner.json")
	o, err := loadOwner(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var told jobs.Limits
	if err := o.change([]string{"max-jobs=2", "deny+=zeb2a,10.0.0.0/8"}, func(l jobs.Limits) { told = l }); err != nil {
		t.Fatal(err)
	}
	want := jobs.Limits{MaxJobs: 2, Deny: []string{"zeb2a", "10.0.0.0/8"}}
	if !reflect.DeepEqual(told, want) {
		t.Fatalf("told %+v", told)
	}
	if err := o.change([]string{"max-jobs=7", "max-jobs=-1"}, nil); !errors.Is(err, api.ErrInvalid) {
		t.Fatalf("got %v, want ErrInvalid", err)
	}
	// Options of the next start change it, for good.
	if _, err = loadOwner(path, []string{"paused=yes", "max-workers-per-job=3"}); err != nil {
		t.Fatal(err)
	}
	want.Paused, want.MaxWorkersPerJob = true, 3
	if o, err = loadOwner(path, nil); err != nil || !reflect.DeepEqual(o.get(), want) {
		t.Fatalf("the next start finds %+v, %v", o.get(), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	for _, broken := range []string{"{", `{"max_jobs": -3}`, `{"deny": ["a,b"]}`} {
		if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadOwner(path, nil); err == nil || !strings.Contains(err.Error(), "repair it, or remove it") {
			t.Errorf("%s: %v", broken, err)
		}
	}
}

// What the owner forbade must not be allowed again by a power cut.
func TestOwnerIsSyncedBeforeItCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "owner.json")
	o, err := loadOwner(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.how.Sync != nil {
		t.Error("outside of tests it is synced as an owner's file need not be")
	}
	synced, told := 0, 0
	o.how.Sync = func(f *os.File) error {
		if told > 0 || o.limits.Paused {
			t.Error("it counted before it was synced")
		}
		synced++
		return nil
	}
	if err := o.change([]string{"paused=yes"}, func(jobs.Limits) { told = synced }); err != nil || told != 2 {
		t.Errorf("counted after %d syncs, want those of the file and of its directory; %v", told, err)
	}
	o.how.Sync = func(*os.File) error { return syscall.EIO }
	if err := o.change([]string{"max-jobs=2"}, func(jobs.Limits) { t.Error("what is not durable counts") }); !errors.Is(err, syscall.EIO) || o.get().MaxJobs != 0 {
		t.Errorf("got %v, and %+v counts", err, o.get())
	}
}

// Changes that come at the same time do not undo each other.
func TestOwnerChangesAtTheSameTime(t *testing.T) {
	o, err := loadOwner(filepath.Join(t.TempDir(), "owner.json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		all.Go(func() {
			if err := o.change([]string{"deny+=" + name}, func(jobs.Limits) {}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(o.get().Deny); n != 6 {
		t.Fatalf("%d of 6 are denied", n)
	}
}
