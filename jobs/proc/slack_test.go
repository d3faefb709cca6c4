package proc

import (
	"os/exec"
	"strings"
	"testing"
)

// What is started by Unhurried may sleep longer, and what is started after it may not.
func TestUnhurried(t *testing.T) {
	slack := func() string {
		out, err := exec.Command("/bin/cat", "/proc/self/timerslack_ns").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	before, within, again := slack(), "", ""
	Unhurried(func() {
		within = slack()
		Unhurried(func() { again = slack() })
		Hurry()
		if hurried := slack(); hurried != "50000" {
			t.Errorf("after Hurry: %s ns", hurried)
		}
	})
	if within != "1000000" || again != within {
		t.Errorf("within: %s, again %s ns", within, again)
	}
	if after := slack(); after != before {
		t.Errorf("after: %s ns, before: %s", after, before)
	}
}
