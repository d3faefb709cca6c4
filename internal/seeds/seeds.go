// Package seeds chooses the random seeds of tests, and says how to run a test
// again with the one that failed. ZORILLA_SEEDS=FROM-TO chooses others, as in
//
//	ZORILLA_SEEDS=1-10000 go test -run TestLargeGroups ./jobs/placement
package seeds

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// variable is the environment variable with the seeds to try.
const variable = "ZORILLA_SEEDS"

// full is the environment variable that .ci/full sets.
const full = "ZORILLA_FULL"

// Full reports whether tests may take the time that .ci/full has.
func Full() bool { return os.Getenv(full) != "" }

// Larger returns one of two sizes: the larger one in .ci/full, the smaller one elsewhere.
func Larger(large, small int) int {
	if Full() {
		return large
	}
	return small
}

// Random calls f with a seed that is another one in each run, or with each of
// ZORILLA_SEEDS until one fails.
func Random(t *testing.T, f func(t *testing.T, seed uint64)) {
	t.Helper()
	one := rand.Uint64()
	from, to := interval(t, one, one)
	for seed := from; ; seed++ {
		// The name of the test must not hold the seed, or what it is called by
		// differs from run to run.
		if !t.Run("seed", func(t *testing.T) { f(t, seed) }) {
			t.Logf("seed %d; the same again: %s", seed, Again(t, seed))
			return
		}
		if seed == to {
			return
		}
	}
}

// One returns one seed, another one in each run or the first of ZORILLA_SEEDS,
// for tests that take too long to be run with many. If the test fails it says
// how to run it again.
func One(t *testing.T) uint64 {
	t.Helper()
	one := rand.Uint64()
	seed, _ := interval(t, one, one)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d; the same again: %s", seed, Again(t, seed))
		}
	})
	return seed
}

// Range returns which seeds a test is to try, both ends included: 1 to most, or
// those of ZORILLA_SEEDS.
func Range(t *testing.T, most uint64) (from, to uint64) {
	t.Helper()
	return interval(t, 1, most)
}

// Again returns the command that runs the test with one seed.
func Again(t *testing.T, seed uint64) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return fmt.Sprintf("%s=%d-%d go test -run '^%s$' %s", variable, seed, seed, name, folder())
}

func interval(t *testing.T, from, to uint64) (uint64, uint64) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return from, to
	}
	if _, err := fmt.Sscanf(text, "%d-%d", &from, &to); err != nil || from > to {
		t.Fatalf("%s=%s: want FROM-TO, as in 1-100", variable, text)
	}
	return from, to
}

// folder returns the package under test as the go command wants it from the
// top of the module.
func folder() string {
	own, err := os.Getwd()
	if err != nil {
		return "."
	}
	for top := own; top != filepath.Dir(top); top = filepath.Dir(top) {
		if _, err := os.Stat(filepath.Join(top, "go.mod")); err == nil {
			rel, _ := filepath.Rel(top, own)
			return "./" + filepath.ToSlash(rel)
		}
	}
	return "."
}
