package api_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
	"zorilla/transfer"
)

// snapshots is a service whose rank has made some files until now.
type snapshots struct {
	*apitest.Fake
	now jobs.RankOutput
}

func (s *snapshots) Snapshot(context.Context, string, int, []string) (jobs.RankOutput, error) {
	return s.now, nil
}

// A file that is made anew and is shorter then is as short beside its rank.
func TestPartialFilesBecomeShorter(t *testing.T) {
	f := apitest.New()
	dir := t.TempDir()
	s := &snapshots{Fake: f}
	p := api.NewPartial(s, api.Wanted{Rank: -1, Into: dir})
	st := jobs.Status{ID: "a@b", Spec: jobs.Spec{Max: 1, Outputs: []string{"*"}}}
	for _, content := range []string{"a long line", "short", "longer again"} {
		put := transfer.PutterFunc(func(h transfer.Hash, data []byte) error { return f.PutChunk(t.Context(), h, data) })
		if err := put(transfer.HashOf([]byte(content)), []byte(content)); err != nil {
			t.Fatal(err)
		}
		h, err := transfer.SaveManifest(put, tree(t, 0, "log="+content).Manifest)
		if err != nil {
			t.Fatal(err)
		}
		s.now = jobs.RankOutput{Manifest: h}
		if err := p.Update(t.Context(), &st, 0); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "log"+api.PartSuffix)); err != nil || string(got) != content {
			t.Errorf("it holds %q, %v, want %q", got, err, content)
		}
	}
}
