package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"zorilla/jobs"
	"zorilla/testnet/hosts/lab"
)

// report keeps what is needed to find out why something is wrong: what failed
// jobs look like now, the nodes' logs, journals and output.
func (p *play) report() error {
	dir := p.o.keep
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "zorilla-chaos-"+strings.ReplaceAll(p.o.name(), " ", "-")+"-")
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	for id := range p.failed {
		err = errors.Join(err, p.explain(filepath.Join(dir, string(id)), id))
	}
	for _, n := range p.nodes {
		err = errors.Join(err, lab.Copy(n.LogFile(), filepath.Join(dir, n.Name+".log"), 0o600), keepState(n.State(), filepath.Join(dir, n.Name)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: not all can be kept:", err)
	}
	fmt.Printf("%s: %d things are wrong:\n", p.o.name(), len(p.wrong))
	for i, text := range p.wrong {
		if i == 30 {
			fmt.Printf("  and %d more\n", len(p.wrong)-i)
			break
		}
		fmt.Println("  " + text)
	}
	again := fmt.Sprintf("go run ./testnet/chaos -seed %d -length %v -jobs %d", p.o.seed, p.o.length, p.o.jobs)
	if p.o.story != storyChance {
		again = "go run ./testnet/chaos -story " + p.o.story
	}
	return fmt.Errorf("status and explanation of the jobs, logs and states of the nodes: %s; again: %s", dir, again)
}

// explain writes down how a job is, and prints it in short. Its origin may have
// to be started for that.
func (p *play) explain(path string, id jobs.ID) error {
	ctx, cancel := context.WithTimeout(context.Background(), emptyTime)
	defer cancel()
	var n *lab.Node
	p.mu.Lock()
	for _, j := range p.story {
		if st := p.ends[id]; p.ids[j.number] == id || st.Spec.Name == j.spec.Name {
			n = p.node(j.origin)
		}
	}
	p.mu.Unlock()
	if n == nil {
		return fmt.Errorf("job %s: nobody knows its origin", id)
	}
	if n.Ended() {
		if err := n.Start(ctx, p.args...); err != nil {
			return err
		}
	}
	st, err := n.Client.Job(ctx, string(id))
	if err != nil {
		return err
	}
	e, err := n.Client.Explain(ctx, string(id))
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(map[string]any{"status": st, "explanation": e}, "", "  ")
	if err != nil {
		return err
	}
	fmt.Printf("%s of %s: %s with %d: %s\n  %s\n", id, n.Name, st.State, st.ExitCode, st.Reason, e.Summary)
	for _, w := range st.Workers {
		fmt.Printf("  rank %d attempt %d at %s: %s, %d and %d bytes, exit %+v\n", w.Rank, w.Attempt, w.Name, w.State, w.Stdout, w.Stderr, w.Exit)
	}
	for _, text := range st.Warnings {
		fmt.Println("  " + text)
	}
	return os.WriteFile(path+".json", b, 0o644)
}

// keepState copies what is durable of a node, and the small files of the workers
// that it has left.
func keepState(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	err := lab.Copy(filepath.Join(from, "journal.db"), filepath.Join(to, "journal.db"), 0o600)
	if cerr := os.CopyFS(filepath.Join(to, "jobs"), os.DirFS(filepath.Join(from, "jobs"))); !errors.Is(cerr, os.ErrNotExist) { // an origin has them
		err = errors.Join(err, cerr)
	}
	claims, _ := filepath.Glob(filepath.Join(from, "work", "*", "*")) // the pattern is good
	for _, path := range claims {
		if info, serr := os.Lstat(path); serr == nil && info.Mode().IsRegular() && info.Size() < 1<<20 {
			err = errors.Join(err, lab.Copy(path, filepath.Join(to, filepath.Base(filepath.Dir(path))+"."+filepath.Base(path)), 0o600))
		}
	}
	return err
}
