package wire_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/where"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
)

// fullOfKinds is the largest advertisement of a job with groups.
func fullOfKinds() wire.Advertisement {
	full := wiretest.Ad(jobtest.Node(1), "k7f3q", jobs.MaxRanks, 1<<63)
	full.Slots, full.Memory, full.Disk, full.GPUs, full.Priority = jobs.MaxSlots, 1<<60, 1<<60, jobs.MaxGPUs, -100
	full.Round, full.Life, full.Near, full.Signed = math.MaxInt, wire.MaxLife.Milliseconds(), true, math.MaxInt64
	full.Length, full.Plan = jobs.MaxTime.Milliseconds(), true
	full.Net = jobs.NetNone
	for range wire.MaxAddrs {
		full.Addrs = append(full.Addrs, "[2001:db8:1111:2222:3333:4444:5555:6666]:65535")
	}
	full.Where = strings.Repeat("x", jobs.MaxConditions/4)
	for i := range jobs.MaxKinds {
		full.Kinds = append(full.Kinds, jobs.Kind{Needs: jobs.Needs{Slots: jobs.MaxSlots, Memory: 1<<60 + int64(i), Disk: 1 << 60, GPUs: jobs.MaxGPUs},
			Where: strings.Repeat("x", (jobs.MaxConditions-len(full.Where))/jobs.MaxKinds)})
	}
	full.Where += strings.Repeat("x", jobs.MaxConditions%8)
	return full
}

// Of the addresses of the origin there are as many in it as there is room for.
func TestLargestAdvertisementOfKindsFits(t *testing.T) {
	full := fullOfKinds()
	for _, addrs := range []int{wire.MaxAddrs, 1, 0} {
		full.Addrs = full.Addrs[:addrs]
		want := min(addrs, 1)
		b := append(make([]byte, wire.SignatureLen), full.Packed()...)
		ad, err := wire.DecodeAdvertisement(b, wiretest.Genuine)
		if err != nil || len(b) > flood.MaxPayload || len(ad.Addrs) != want || len(ad.Kinds) != jobs.MaxKinds || ad.Where != full.Where {
			t.Errorf("%v; with %d of %d addresses it takes %d bytes of %d", err, len(ad.Addrs), addrs, len(b), flood.MaxPayload)
		}
	}
	few := fullOfKinds()
	few.Kinds = few.Kinds[:1]
	if got := few.Packed(); !bytes.Equal(got, codec.MustMarshal(few)) {
		t.Error("addresses are left out though there is room for them")
	}
}

func TestSenselessKindsAreRefused(t *testing.T) {
	good := wiretest.Ad(jobtest.Node(1), "k7f3q", 4, 1)
	good.Kinds = []jobs.Kind{{Needs: jobs.Needs{Slots: 1, Memory: 5}}, {Needs: jobs.Needs{Slots: 2}, Where: "slots > 2"}}
	for name, change := range map[string]func(*wire.Advertisement){
		"":                   func(*wire.Advertisement) {},
		"too many":           func(a *wire.Advertisement) { a.Kinds = fill(jobs.MaxKinds + 1) },
		"no slots":           func(a *wire.Advertisement) { a.Kinds[1].Slots = 0 },
		"too many slots":     func(a *wire.Advertisement) { a.Kinds[1].Slots = jobs.MaxSlots + 1 },
		"negative memory":    func(a *wire.Advertisement) { a.Kinds[1].Memory = -1 },
		"negative disk":      func(a *wire.Advertisement) { a.Kinds[1].Disk = -1 },
		"negative GPUs":      func(a *wire.Advertisement) { a.Kinds[1].GPUs = -1 },
		"too many GPUs":      func(a *wire.Advertisement) { a.Kinds[1].GPUs = jobs.MaxGPUs + 1 },
		"not to be printed":  func(a *wire.Advertisement) { a.Kinds[1].Where = "a\x1bb" },
		"one long condition": func(a *wire.Advertisement) { a.Kinds[1].Where = strings.Repeat("x", where.MaxLength+1) },
		"long together": func(a *wire.Advertisement) {
			a.Where, a.Kinds[0].Where, a.Kinds[1].Where = strings.Repeat("x", 101), strings.Repeat("x", 200), strings.Repeat("x", 100)
		},
	} {
		ad := good
		ad.Kinds = append([]jobs.Kind{}, good.Kinds...)
		change(&ad)
		b := append(make([]byte, wire.SignatureLen), codec.MustMarshal(ad)...)
		if _, err := wire.DecodeAdvertisement(b, wiretest.Genuine); (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// fill is so many kinds.
func fill(n int) (list []jobs.Kind) {
	for i := range n {
		list = append(list, jobs.Kind{Needs: jobs.Needs{Slots: 1}, Where: fmt.Sprintf("slots > %d", i)})
	}
	return list
}

func TestSenselessRoomIsRefused(t *testing.T) {
	good := wire.Answer{Job: wiretest.Job, Round: 1, Key: 7, Workers: 2, Capacity: 4, Fits: 3}
	for name, c := range map[string]struct {
		room   wire.Room
		change func(*wire.Answer)
	}{
		"":               {wire.Room{Slots: 4, Memory: 1, Disk: 1, GPUs: 1}, func(*wire.Answer) {}},
		"no offer":       {wire.Room{Slots: 4}, func(a *wire.Answer) { a.Workers, a.Key = 0, 0 }},
		"no slots":       {wire.Room{Memory: 1}, func(*wire.Answer) {}},
		"too many slots": {wire.Room{Slots: jobs.MaxSlots + 1}, func(*wire.Answer) {}},
		"memory":         {wire.Room{Slots: 4, Memory: -1}, func(*wire.Answer) {}},
		"disk":           {wire.Room{Slots: 4, Disk: -1}, func(*wire.Answer) {}},
		"GPUs":           {wire.Room{Slots: 4, GPUs: -1}, func(*wire.Answer) {}},
		"too many GPUs":  {wire.Room{Slots: 4, GPUs: jobs.MaxGPUs + 1}, func(*wire.Answer) {}},
	} {
		a := good
		a.Room = &c.room
		c.change(&a)
		if err := a.Check(); (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
