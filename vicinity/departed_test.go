package vicinity

import (
	"slices"
	"testing"
	"time"
)

// Where a node was is remembered when it has left, so that others near there can be told; of one that is
// back it is not, as it may be elsewhere.
func TestPlaceOutlastsAMember(t *testing.T) {
	k := newTalk(t, 2, 1, 12)
	for i := 1; i <= 12; i++ {
		for range 3 {
			k.took(k.core.Observe(k.now, testID(i), time.Duration(i)*ms))
		}
	}
	here := k.core.where.bearings()
	away := slices.Clone(here)
	for i := range away {
		away[i].rtt += 30 * ms
	}
	var others []int // no landmarks
	for i := 1; i <= 12; i++ {
		if !k.core.where.isLandmark(testID(i)) {
			others = append(others, i)
		} else {
			k.core.Placed(k.now, testID(i), here.wire())
		}
	}
	lost, beside, far := others[0], others[1], others[2]
	for i, at := range map[int]bearings{lost: away, beside: away, far: here} {
		k.core.Placed(k.now, testID(i), at.wire())
	}
	k.leave(lost)
	near, ok := k.core.Distance(testID(lost), testID(beside))
	apart, ok2 := k.core.Distance(testID(far), testID(lost))
	if !ok || !ok2 || near > 2*ms || apart < 10*ms {
		t.Errorf("a node that has left was %v (%v) and %v (%v) from two others, want near 0 and far", near, ok, apart, ok2)
	}
	k.join(lost)
	if d, ok := k.core.Distance(testID(lost), testID(beside)); ok {
		t.Errorf("a node that is back is %v from another one though it has not said where it is", d)
	}
}

func TestPlacesOfTheDepartedAreBounded(t *testing.T) {
	var d departed
	for i := range maxDeparted + 3 {
		d.add(testID(i), bearings{{tag: 1}})
		d.add(testID(2), bearings{{tag: 2}}) // which leaves again and again
		d.add(testID(1000), nil)
	}
	if _, first := d.at[testID(0)]; len(d.at) != maxDeparted || len(d.order) != maxDeparted || first || d.at[testID(2)] == nil {
		t.Errorf("%d places are known, %d in order; want %d, not the first, but the latest", len(d.at), len(d.order), maxDeparted)
	}
}
