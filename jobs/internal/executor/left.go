package executor

import (
	"context"
	"fmt"
	"strings"

	"zorilla/internal/plain"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// leftVersion is the version of the protocol from which on origins take files that no pattern
// names; others take them for a mistake of the node.
const leftVersion = 6

func (c *Config) takesLeft(origin vicinity.ID) bool {
	m, known := c.Member(origin)
	return origin == c.Self.ID || known && m.Version >= leftVersion
}

// gatherLeft stores what a worker has left of whose job nobody has named output files, if that
// is little; else its user is told what is removed. Of several ranks rank 0 speaks for all.
func (c *Config) gatherLeft(ctx context.Context, e participant.DoGather, dir string, put transfer.Putter, inputs *transfer.Manifest) (*jobs.RankOutput, []string, error) {
	if !c.takesLeft(e.Worker.Job.Origin()) {
		return nil, nil, nil
	}
	left, files, bytes := transfer.FindLeft(dir, inputs, jobs.MaxLeftFiles, jobs.ForPeople)
	if files == 0 {
		return nil, nil, nil
	}
	var names []string
	for _, l := range left[:min(len(left), jobs.ToldLeft)] {
		names = append(names, plain.OneLine(l.Path))
	}
	if files > len(names) {
		names = append(names, "...")
	}
	list := strings.Join(names, ", ")
	if len(list) > jobs.MaxLeft {
		list = strings.ToValidUTF8(list[:jobs.MaxLeft-3], "") + "..."
	}
	if files <= jobs.MaxLeftFiles && bytes <= jobs.MaxLeftBytes {
		tree, _, err := transfer.CollectLeft(ctx, put, dir, left)
		if err == nil && len(tree.Entries) > 0 {
			hash, err := transfer.SaveManifest(put, tree)
			if err == nil {
				return &jobs.RankOutput{Rank: e.Worker.Rank, Attempt: e.Worker.Attempt, Manifest: hash, Files: tree.Files(), Bytes: tree.Size(), Left: list}, nil, nil
			}
		}
	}
	if e.Worker.Rank > 0 {
		return nil, nil, nil
	}
	verb := "is"
	if files > 1 {
		verb = "are"
	}
	text := fmt.Sprintf("%s: %s, %s, that no -o names %s removed: %s", e.Who, units.Count(files, "file", "files"), units.Bytes(bytes), verb, list)
	return nil, []string{plain.OneLine(text)}, nil
}
