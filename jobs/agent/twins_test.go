package agent

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/journal"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// twins are two nodes whose IDs begin with the same five characters.
func twins(t *testing.T) (a, b jobtest.Signer) {
	t.Helper()
	one := func(n uint64) jobtest.Signer {
		key := ed25519.NewKeyFromSeed(binary.BigEndian.AppendUint64(make([]byte, 24), n))
		return jobtest.Signer{ID: vicinity.IDFromKey(key.Public().(ed25519.PublicKey)), Key: key}
	}
	a, b = one(6), one(272)
	if a.ID == b.ID || a.ID.Short() != b.ID.Short() {
		t.Fatalf("%s and %s are no twins", a.ID, b.ID)
	}
	return a, b
}

func TestIDNamesItsWholeOrigin(t *testing.T) {
	origin, twin := twins(t)
	id := jobs.NewID(rand.New(rand.NewPCG(1, 2)), origin.ID)
	if !id.Valid() || id.Origin() != origin.ID || id.Short() != string(id[:5])+"@"+origin.ID.Short() || id == id.At(twin.ID) || id.Short() != id.At(twin.ID).Short() {
		t.Fatalf("ID %q of origin %s", id, origin.ID)
	}
	for _, bad := range []jobs.ID{"", "@", "k7f3q", "k7f3q@", jobs.ID(id.Short()), id[1:], id + "a", id[:len(id)-1], "../..@" + jobs.ID(origin.ID), "K7f3q@" + jobs.ID(origin.ID), "k7f3q@y" + jobs.ID(origin.ID[1:]), "k7f3q-" + jobs.ID(origin.ID)} {
		if bad.Valid() {
			t.Errorf("%q is valid", bad)
		}
	}

	// What another node says of the origin's job has no weight, however alike
	// their IDs look.
	s := New(Config{Self: vicinity.Member{ID: jobtest.Node(1), Slots: 1}, Store: transfer.NewMemStore(0), Verify: jobtest.Verify, Rand: rand.New(rand.NewPCG(1, 2))})
	s.core.Claims.Member = func(vicinity.ID) (vicinity.Member, bool) { return vicinity.Member{}, false }
	ad := wiretest.Ad(origin.ID, "aaaaa", 1, 1)
	if a := s.core.Claims.Advertised(jobtest.Start, ad); a.Workers != 1 {
		t.Fatalf("got %+v", a)
	}
	if s.core.Yielded(jobtest.Start, twin.ID, primary.DoYield{Job: ad.Job, Forget: true}); len(s.core.Claims.Holds) != 1 {
		t.Error("a twin ended a hold")
	}
	if err := s.core.Granted(jobtest.Start, twin.ID, &wire.Grant{Job: ad.Job}); !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), "does not originate at") {
		t.Errorf("a twin's grant: %v", err)
	}
	if _, err := s.measureReceived(twin.ID, &wire.Measure{Job: ad.Job}); !errors.Is(err, jobs.ErrRefused) {
		t.Errorf("a twin's measurement: %v", err)
	}
	ad.Signed = time.Now().UnixMilli()
	msg := codec.MustMarshal(ad)
	if err := s.CheckAdvertisement(twin.ID, append(twin.Sign(wire.SignatureDomain, msg), msg...)); err == nil {
		t.Error("a twin advertised the origin's job")
	}
	if err := s.CheckAdvertisement(origin.ID, append(origin.Sign(wire.SignatureDomain, msg), msg...)); err != nil {
		t.Errorf("the origin's own advertisement: %v", err)
	}
}

func TestIDsAreToldApart(t *testing.T) {
	origin, twin := twins(t)
	a, other := jobs.ID("aaaaa").At(origin.ID), jobs.ID("aaaab").At(origin.ID)
	b := a.At(twin.ID)
	n := jobs.Shared(a, b) + 1
	if got, want := jobs.Distinct([]jobs.ID{b, other, a, a}), []string{string(b[:n]), other.Short(), string(a[:n]), string(a[:n])}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if id, err := jobs.Only("aaaaa", []jobs.ID{b}); id != b || err != nil {
		t.Errorf("got %s, %v", id, err)
	}
	_, err := jobs.Only(a.Short(), []jobs.ID{a, b})
	if !errors.Is(err, jobs.ErrAmbiguous) || !strings.Contains(err.Error(), string(a[:n])) || !strings.Contains(err.Error(), string(b[:n])) {
		t.Errorf("two jobs of one name: %v", err)
	}
	many := make([]jobs.ID, 9)
	for i := range many {
		many[i] = jobs.ID("aaaa" + string(rune('a'+i))).At(origin.ID)
	}
	if _, err := jobs.Only("aaaa", many); err == nil || strings.Count(err.Error(), "@") != 5 || !strings.HasSuffix(err.Error(), " or one of 4 more") {
		t.Errorf("many jobs of one name: %v", err)
	}
}

// A journal with one entry that a node will not go on with.
func refusedJournal(t *testing.T, key string) error {
	t.Helper()
	j := journal.NewMemory()
	go j.Run(t.Context())
	done := make(chan error)
	j.Append([]journal.Entry{{Key: key, Data: codec.MustMarshal(record.Event{Kind: record.Submitted, At: time.Now()})}}, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s := New(Config{Self: vicinity.Member{ID: jobtest.Node(1), Slots: 1}, Store: transfer.NewMemStore(0), Rand: rand.New(rand.NewPCG(1, 2)), Journal: j, Dir: t.TempDir()})
	return s.own.Load(func() error { return nil })
}

// A journal of the version that named origins in short is not mistaken for an
// empty one.
func TestJournalOfAnEarlierVersionIsRefused(t *testing.T) {
	const want = "read jobs: job k7f3q@zaaba was written by an earlier version, whose jobs this one cannot read: let that version end them, or begin with another state directory"
	if err := refusedJournal(t, "k7f3q@zaaba"); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// A node whose key is gone does not take the jobs of its former self for its
// own.
func TestJournalOfAnotherNodeIsRefused(t *testing.T) {
	want := fmt.Sprintf("read jobs: job k7f3q@%s is one of node %s, and this is node %s: restore the identity.key of that node, or remove journal.db to begin without its jobs",
		jobtest.Node(2).Short(), jobtest.Node(2), jobtest.Node(1))
	if err := refusedJournal(t, "k7f3q@"+string(jobtest.Node(2))); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
