package origin_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/journal"
)

// unlucky is a journal whose writes wait and may fail.
type unlucky struct {
	journal.Journal
	next chan bool // each write waits for one: whether it fails
}

func (b *unlucky) Append(entries []journal.Entry, done func(error)) {
	go func() {
		if <-b.next {
			done(errors.New("no luck"))
			return
		}
		b.Journal.Append(entries, done)
	}()
}

// A key whose job was refused is free again, and all who had submitted it are
// told.
func TestKeyOfAJobThatIsRefused(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		disk := &unlucky{next: make(chan bool)}
		h.stop()
		h.wrap = func(m *journal.Memory) journal.Journal { disk.Journal = m; return disk }
		h.start()
		spec := jobs.Spec{Key: "k", Args: []string{"say"}, Min: 1, Max: 1, Slots: 1}
		results := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := h.Submit(t.Context(), spec)
				results <- err
			}()
			synctest.Wait()
		}
		select {
		case err := <-results:
			t.Fatalf("answered before it was written down: %v", err)
		default:
		}
		disk.next <- true
		for range 2 {
			if err := <-results; err == nil || !strings.Contains(err.Error(), "no luck") {
				t.Errorf("got %v", err)
			}
		}
		close(disk.next)
		if st := h.await(h.submit(spec)); st.State != jobs.Completed {
			t.Errorf("the job is %s: %s", st.State, st.Reason)
		}
		if all := h.List(-1); len(all) != 1 {
			t.Errorf("there are %d jobs", len(all))
		}
	})
}

// Who follows a job of many workers is not told of each of them, but of its end at once.
func TestChangesAreGathered(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		id := h.submit(jobs.Spec{Args: []string{"wait"}, Min: 500})
		st, version, err := h.Status(id)
		answers := 0
		for ; err == nil && st.State != jobs.Running; answers++ {
			st, version, err = h.Await(t.Context(), id, version)
		}
		if err != nil || answers > 2 {
			t.Errorf("%d answers until it ran, %v", answers, err)
		}
		id = h.submit(jobs.Spec{Args: []string{"say"}, Min: 900})
		if st := h.await(id); time.Since(st.Ended) > 10*time.Millisecond {
			t.Errorf("its end was told after %v", time.Since(st.Ended))
		}
	})
}

// A node whose journal cannot be written stops when a job that it has accepted goes on: what
// it would do next it could not remember.
func TestNodeStopsWhenItsJournalFails(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		disk := &unlucky{next: make(chan bool)}
		h.stop()
		h.wrap = func(m *journal.Memory) journal.Journal { disk.Journal = m; return disk }
		h.start()
		go func() { _, _ = h.Submit(t.Context(), jobs.Spec{Args: []string{"say"}, Min: 1, Max: 1, Slots: 1}) }()
		failed := func() error {
			synctest.Wait()
			select {
			case err := <-h.loop.Failed():
				return err
			default:
				return nil
			}
		}
		disk.next <- false // the job is accepted
		if err := failed(); err != nil {
			t.Fatalf("stops though nothing has failed: %v", err)
		}
		disk.next <- true // its workers are granted
		if err := failed(); err == nil || err.Error() != "write the journal: no luck" {
			t.Errorf("got %v, want the node to stop", err)
		}
		close(disk.next)
	})
}

// Keys that the archive cannot tell apart are those of different jobs.
func TestKeysWithTheSameHash(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		var keys [2]string
		for i, seen := 0, map[uint32]string{}; keys[0] == ""; i++ {
			key := fmt.Sprintf("%032d", 7919*i)
			sum := crc32.ChecksumIEEE([]byte(key))
			if other := seen[sum]; other != "" {
				keys = [2]string{other, key}
			}
			seen[sum] = key
		}
		var ids [2]jobs.ID
		for i, key := range keys {
			ids[i] = h.submit(jobs.Spec{Args: []string{"echo"}, Key: key})
			h.await(ids[i])
		}
		for i, key := range keys {
			if again := h.submit(jobs.Spec{Args: []string{"echo"}, Key: key}); again != ids[i] || ids[0] == ids[1] {
				t.Errorf("key %d of %v is that of %s", i, ids, again)
			}
		}
	})
}
