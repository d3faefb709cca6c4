package main

import (
	"os/exec"
	"regexp"
	"testing"

	"zorilla/examples/peers/crew"
)

// On real nodes Zorilla tries a rank again that is lost in the middle of its work, and the sum
// is right.
func TestLostThiefOnRealNodes(t *testing.T) {
	dir := t.TempDir()
	crew.Build(t, dir, "cmd/zorilla", "examples/nqueens")
	env := []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=" + dir}
	env = append(env, crew.Nodes(t, dir, env, nil, "-n", "3", "--slots", "2"))
	cmd := exec.Command("sh", "-euc", `
		job=$(zorilla submit -n 2..4 --retries 3 ./nqueens -steal 16)
		until zorilla logs $job:2 | grep -q 'rank 2: works for rank'; do sleep 0.1; done
		for p in /proc/[0-9]*; do
			test "$(cat $p/comm 2>/dev/null)" = nqueens && tr '\0' '\n' 2>/dev/null <$p/environ >environ || continue
			grep -qx ZORILLA_RANK=2 environ && grep -q "^ZORILLA_JOB_ID=$job" environ && kill -9 ${p#/proc/}
		done
		zorilla wait $job
		for rank in 0 2; do zorilla logs $job:$rank; done`)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{`(?m)^rank 2: attempt 2 listens at`, `(?m)^16 queens: 14772512 solutions$`} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}
