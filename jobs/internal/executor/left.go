package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"zorilla/internal/sanitize"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/disk"
	"zorilla/jobs/internal/participant"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// leftVersion is the version of the protocol from which on origins take files that no pattern
// names; others take them for a mistake of the node.
const leftVersion = 6

func (c *Config) takesLeft(origin vicinity.ID) bool {
	if origin == c.Self.ID {
		return true
	}
	m, known := c.Member(origin)
	return known && m.Version >= leftVersion
}

// gatherLeft stores the files that a worker of a job without output patterns has left, if they
// are few and small; else its user is warned that they are removed, unless others do that. If it is not the
// last try, a full disk is an error.
func (c *Config) gatherLeft(ctx context.Context, e participant.DoGather, dir string, put transfer.Putter,
	inputs *transfer.Manifest, warns, last bool) (*jobs.RankOutput, []string, error) {
	if !c.takesLeft(e.Worker.Job.Origin()) {
		return nil, nil, nil
	}
	left, files, bytes := transfer.FindLeft(dir, inputs, jobs.MaxLeftFiles, transfer.ForPeople)
	if files == 0 {
		return nil, nil, nil
	}
	if files <= jobs.MaxLeftFiles && bytes <= jobs.MaxLeftBytes {
		out, warn, err := c.storeLeft(ctx, e, dir, put, left)
		if err == nil || disk.IsFull(err) && !last {
			return out, warn, err
		}
	}
	if !warns {
		return nil, nil, nil
	}
	verb := "is"
	if files > 1 {
		verb = "are"
	}
	text := fmt.Sprintf("%s: %s, %s, that no -o names %s removed: %s",
		e.Who, units.Count(files, "file", "files"), units.Bytes(bytes), verb, nameSome(left, files))
	return nil, []string{sanitize.OneLine(text)}, nil
}

// storeLeft stores files that a worker has left, but for those whose names cannot be sent.
func (c *Config) storeLeft(ctx context.Context, e participant.DoGather, dir string, put transfer.Putter,
	left []transfer.Left) (*jobs.RankOutput, []string, error) {
	tree, warn, err := transfer.CollectLeft(ctx, put, dir, left)
	warn = labelled(e.Who, warn)
	if err != nil || len(tree.Entries) == 0 {
		return nil, warn, err
	}
	hash, err := transfer.SaveManifest(put, tree)
	if err != nil {
		return nil, warn, err
	}
	left = slices.DeleteFunc(left, func(l transfer.Left) bool { return transfer.CheckPath(l.Path) != nil })
	return &jobs.RankOutput{
		Rank: e.Worker.Rank, Attempt: e.Worker.Attempt, Manifest: hash, Files: tree.Files(), Bytes: tree.Size(), Left: nameSome(left, tree.Files()),
	}, warn, nil
}

// nameSome lists the first of so many files on one line.
func nameSome(left []transfer.Left, files int) string {
	var names []string
	for _, l := range left[:min(len(left), jobs.MaxNamedLeft)] {
		names = append(names, sanitize.OneLine(l.Path))
	}
	if files > len(names) {
		names = append(names, "...")
	}
	list := strings.Join(names, ", ")
	if len(list) > jobs.MaxLeft {
		list = strings.ToValidUTF8(list[:jobs.MaxLeft-3], "") + "..."
	}
	return list
}

// labelled are warnings about a worker, as many as its origin takes.
func labelled(who string, warn []string) []string {
	warn = warn[:min(len(warn), jobs.MaxWarnings)]
	for i := range warn {
		warn[i] = sanitize.OneLine(fmt.Sprintf("%s: %s", who, warn[i]))
	}
	return warn
}
