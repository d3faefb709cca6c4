package vicinity

import "testing"

func TestRoster(t *testing.T) {
	var r Roster
	if r.Has(testID(0)) || r.Remove(testID(0)) || r.Len() != 0 {
		t.Fatal("the zero roster is not empty")
	}
	for i := range 4 {
		if !r.Add(testID(i)) || r.Add(testID(i)) {
			t.Fatal("Add does not tell new from known")
		}
	}
	if !r.Remove(testID(1)) || r.Has(testID(1)) || r.Len() != 3 {
		t.Fatal("Remove does not remove")
	}
	seen := make(map[ID]bool)
	for i := range r.Len() {
		seen[r.At(i)] = true
	}
	if len(seen) != 3 || !seen[testID(0)] || !seen[testID(2)] || !seen[testID(3)] {
		t.Fatalf("left are %v", seen)
	}
}
