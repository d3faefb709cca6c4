package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"zorilla/jobs"
	"zorilla/transfer"
)

// Push brings files into the node's store and returns the hash of their
// manifest, for jobs.Spec.Inputs. The zero Hash stands for no files.
func Push(ctx context.Context, s Service, inputs []transfer.Input) (transfer.Hash, error) {
	if len(inputs) == 0 {
		return transfer.Hash{}, nil
	}
	up, err := transfer.Upload(ctx, s, inputs)
	return up.Manifest, err
}

// Pulled tells what Pull did.
type Pulled struct {
	Ranks    int // whose outputs were there
	Files    int // written
	Bytes    int64
	Warnings []string // one line each
}

// Pull writes the outputs of the job's ranks that have ended, or of the one
// rank if rank is not negative, into the directory. All ranks share it, as
// Merge says, unless it contains %r, which stands for the rank, or %t for the
// task: the files of an array's task are those that bear its number where the
// job's patterns have %t. Files that exist there are replaced.
//
// The status comes from the network: files that none of the job's patterns
// names are an error.
func Pull(ctx context.Context, s Service, st jobs.Status, rank int, into string) (Pulled, error) {
	var done Pulled
	get := transfer.GetterFunc(func(h transfer.Hash, _ []byte) ([]byte, error) { return s.Chunk(ctx, string(st.ID), h) })
	write := func(m transfer.Manifest, dir string) error {
		if err := m.Write(ctx, get, dir); err != nil {
			return fmt.Errorf("fetch outputs into %s: %w", dir, err)
		}
		done.Files += m.Files()
		done.Bytes += m.Size()
		return nil
	}
	apart, tasks := strings.Contains(into, "%r"), strings.Contains(into, "%t")
	if apart && tasks {
		return done, fmt.Errorf("%w: --into %s: want one of %%r and %%t", ErrInvalid, into)
	}
	var trees []RankTree
	for _, o := range st.Outputs {
		if rank >= 0 && o.Rank != rank || o.Manifest.IsZero() {
			continue
		}
		m, err := transfer.LoadManifest(get, o.Manifest)
		if err != nil {
			return done, fmt.Errorf("fetch outputs of rank %d: %w", o.Rank, err)
		}
		if err := checkOutputs(st.Spec.Globs(), m); err != nil {
			return done, fmt.Errorf("fetch outputs of rank %d: %w", o.Rank, err)
		}
		done.Ranks++
		if !apart {
			trees = append(trees, RankTree{o.Rank, m})
			continue
		}
		if err := write(m, strings.ReplaceAll(into, "%r", strconv.Itoa(o.Rank))); err != nil {
			return done, err
		}
	}
	if apart || len(trees) == 0 {
		return done, nil
	}
	if tasks {
		var err error
		done.Warnings, err = pullTasks(&st.Spec, trees, into, write)
		return done, err
	}
	m, warnings, err := Merge(trees)
	done.Warnings = warnings
	if err != nil {
		return done, err
	}
	return done, write(m, into)
}

func checkOutputs(globs []string, m transfer.Manifest) error {
	for _, e := range m.Entries {
		if e.Link != "" {
			return fmt.Errorf("%w: its node sent the symbolic link %.80q: only files are outputs", ErrRefused, e.Path)
		}
		if !transfer.MatchOutput(globs, e.Path) {
			return fmt.Errorf("%w: its node sent %.80q, which no output pattern of the job names", ErrRefused, e.Path)
		}
	}
	return nil
}

// errTogether is how to get outputs that cannot be in one directory.
var errTogether = errors.New("fetch the ranks into directories of their own, as with --into 'out/%r'")
