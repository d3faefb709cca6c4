package jobs

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
	"zorilla/jobs/journal"
	"zorilla/vicinity"
)

// twins are two nodes whose IDs begin with the same five characters.
func twins(t *testing.T) (a, b signer) {
	t.Helper()
	one := func(n uint64) signer {
		key := ed25519.NewKeyFromSeed(binary.BigEndian.AppendUint64(make([]byte, 24), n))
		return signer{vicinity.IDFromKey(key.Public().(ed25519.PublicKey)), key}
	}
	a, b = one(6), one(272)
	if a.id == b.id || a.id.Short() != b.id.Short() {
		t.Fatalf("%s and %s are no twins", a.id, b.id)
	}
	return a, b
}

func TestIDNamesItsWholeOrigin(t *testing.T) {
	origin, twin := twins(t)
	id := NewID(rand.New(rand.NewPCG(1, 2)), origin.id)
	if !id.Valid() || id.Origin() != origin.id || id.Short() != string(id[:5])+"@"+origin.id.Short() || id == id.At(twin.id) || id.Short() != id.At(twin.id).Short() {
		t.Fatalf("ID %q of origin %s", id, origin.id)
	}
	for _, bad := range []ID{"", "@", "k7f3q", "k7f3q@", ID(id.Short()), id[1:], id + "a", id[:len(id)-1], "../..@" + ID(origin.id), "K7f3q@" + ID(origin.id), "k7f3q@y" + ID(origin.id[1:]), "k7f3q-" + ID(origin.id)} {
		if bad.Valid() {
			t.Errorf("%q is valid", bad)
		}
	}

	// What another node says of the origin's job has no weight, however alike
	// their IDs look.
	s := New(Config{Self: vicinity.Member{ID: testNode(1), Slots: 1}, Verify: verifySigned, Rand: rand.New(rand.NewPCG(1, 2))})
	s.core.claims.member = func(vicinity.ID) (vicinity.Member, bool) { return vicinity.Member{}, false }
	ad := testAd(origin.id, "aaaaa", 1, 1)
	if a := s.core.claims.advertised(start, ad); a.Workers != 1 {
		t.Fatalf("got %+v", a)
	}
	if s.core.yielded(start, twin.id, ad.Job, true); len(s.core.claims.holds) != 1 {
		t.Error("a twin ended a hold")
	}
	if err := s.core.granted(start, twin.id, &Grant{Job: ad.Job}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "does not originate at") {
		t.Errorf("a twin's grant: %v", err)
	}
	if _, err := s.measureReceived(twin.id, &Measure{Job: ad.Job}); !errors.Is(err, ErrRefused) {
		t.Errorf("a twin's measurement: %v", err)
	}
	ad.Signed = time.Now().UnixMilli()
	msg := codec.MustMarshal(ad)
	if err := s.CheckAdvertisement(twin.id, append(twin.sign(SignatureDomain, msg), msg...)); err == nil {
		t.Error("a twin advertised the origin's job")
	}
	if err := s.CheckAdvertisement(origin.id, append(origin.sign(SignatureDomain, msg), msg...)); err != nil {
		t.Errorf("the origin's own advertisement: %v", err)
	}
}

func TestIDsAreToldApart(t *testing.T) {
	origin, twin := twins(t)
	a, other := ID("aaaaa").At(origin.id), ID("aaaab").At(origin.id)
	b := a.At(twin.id)
	n := shared(a, b) + 1
	if got, want := Distinct([]ID{b, other, a, a}), []string{string(b[:n]), other.Short(), string(a[:n]), string(a[:n])}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if id, err := Only("aaaaa", []ID{b}); id != b || err != nil {
		t.Errorf("got %s, %v", id, err)
	}
	_, err := Only(a.Short(), []ID{a, b})
	if !errors.Is(err, ErrAmbiguous) || !strings.Contains(err.Error(), string(a[:n])) || !strings.Contains(err.Error(), string(b[:n])) {
		t.Errorf("two jobs of one name: %v", err)
	}
	many := make([]ID, 9)
	for i := range many {
		many[i] = ID("aaaa" + string(rune('a'+i))).At(origin.id)
	}
	if _, err := Only("aaaa", many); err == nil || strings.Count(err.Error(), "@") != 5 || !strings.HasSuffix(err.Error(), " or one of 4 more") {
		t.Errorf("many jobs of one name: %v", err)
	}
}

// A journal with one entry that a node will not go on with.
func refusedJournal(t *testing.T, key string) error {
	t.Helper()
	j := journal.NewMemory()
	go j.Run(t.Context())
	done := make(chan error)
	j.Append([]journal.Entry{{Key: key, Data: codec.MustMarshal(event{Kind: evSubmitted, At: time.Now()})}}, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s := New(Config{Self: vicinity.Member{ID: testNode(1), Slots: 1}, Rand: rand.New(rand.NewPCG(1, 2)), Journal: j, Dir: t.TempDir()})
	return s.load()
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
		testNode(2).Short(), testNode(2), testNode(1))
	if err := refusedJournal(t, "k7f3q@"+string(testNode(2))); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// Nor is what that version left in its work directory.
func TestClaimOfAnEarlierVersionIsRefused(t *testing.T) {
	c := claimRecord{Version: 1, Job: testJob, RankAttempt: RankAttempt{0, 1}, Spec: Spec{Args: []string{"x"}, Min: 1, Max: 1, Slots: 1}}
	if err := c.check(); err == nil || err.Error() != "claim of version 1, this node understands only 2" {
		t.Errorf("got %v", err)
	}
	if c.Version = claimVersion; c.check() != nil {
		t.Errorf("a claim of this version: %v", c.check())
	}
}
