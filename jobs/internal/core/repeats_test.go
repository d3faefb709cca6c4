package core

import (
	"reflect"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// A yield is sent twice, and no more, and what is late ends nothing newer.
func TestYieldsAreSentTwice(t *testing.T) {
	p := newPair(t)
	job := jobs.ID("aaaaa").At(jobtest.Node(1))
	p.core.yield(p.now, jobtest.Node(2), wire.Packet{Yield: job, Forget: true})
	if at := p.core.Wake(); !at.Equal(p.now.Add(repeatAfter)) {
		t.Errorf("wakes at %v", at)
	}
	p.act()
	first := len(p.packets)
	p.pass(time.Second)
	if first != 1 || len(p.packets) != 2 || !reflect.DeepEqual(p.packets[0], p.packets[1]) {
		t.Fatalf("sent %d times at first, then as %+v", first, p.packets)
	}

	n := New(vicinity.Member{ID: jobtest.Node(2), Slots: 1}, few{}, jobtest.Rand(), time.Hour)
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 1, 1)
	ad.Signed = p.now.Add(repeatAfter / 2).UnixMilli()
	n.Advertised(p.now, ad, flood.Message{})
	if n.Received(p.now, jobtest.Node(1), p.packets[1]); n.Claims.Holds[ad.Job] == nil {
		t.Error("ends an offer that was made later")
	}

	for range maxRepeats + 1 {
		p.core.yield(p.now, jobtest.Node(2), wire.Packet{Yield: job})
	}
	if len(p.core.again) != maxRepeats {
		t.Errorf("%d are kept", len(p.core.again))
	}
}

// What this node gives back of its own is gone before it is asked again, not after.
func TestOwnYieldsComeInOrder(t *testing.T) {
	c := New(vicinity.Member{ID: jobtest.Node(1), Slots: 1}, few{}, jobtest.Rand(), time.Hour)
	ad := wiretest.Ad(jobtest.Node(1), "aaaaa", 1, 1)
	offered := func() uint64 {
		c.ask(jobtest.Start, ad)
		return c.soon[len(c.soon)-1].Answer.Key
	}
	first := offered()
	c.yield(jobtest.Start, jobtest.Node(1), wire.Packet{Yield: ad.Job, Key: first})
	second := offered()
	if c.Claims.Holds[ad.Job] == nil || first == second || len(c.soon) != 2 {
		t.Errorf("what it offers again will be gone; keys %d, %d", first, second)
	}
}
