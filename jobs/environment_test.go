package jobs

import (
	"slices"
	"testing"
)

func TestForeign(t *testing.T) {
	env := []string{"HOME=/root", "ZORILLA_SECRET=squirrel", "A=ZORILLA_B", "ZORILLA_="}
	if got := Foreign(env); !slices.Equal(got, []string{"HOME=/root", "A=ZORILLA_B"}) || env[1] != "ZORILLA_SECRET=squirrel" {
		t.Errorf("got %q of %q", got, env)
	}
}
