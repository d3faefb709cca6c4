package completion

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// known is a network as a node knows it.
type known struct{}

func (known) Jobs() []jobs.Summary {
	at := vicinity.ID("zeb2a" + strings.Repeat("a", 22))
	return []jobs.Summary{
		{ID: jobs.ID("aaaaa").At(at), Name: "train", State: jobs.Running},
		{ID: jobs.ID("bbbbb").At(at), Name: "x;rm", State: jobs.Running},
		{ID: jobs.ID("ccccc").At(at), Args: []string{"sleep", "3"}, State: jobs.Completed},
		{ID: jobs.ID("ddddd").At(at), Name: "train", State: jobs.Failed},
		{ID: jobs.ID("eeeee").At(at), Name: "\x1b[31m", State: jobs.Failed},
		{ID: jobs.ID("fffff").At(at), Name: "a:b", State: jobs.Failed},
	}
}

func (known) Nodes() []api.NodeInfo {
	return []api.NodeInfo{
		{Member: vicinity.Member{ID: "zeb2aaaaa", Name: "here", Labels: map[string]string{"rack": "a"}}},
		{Member: vicinity.Member{ID: "zabcdefgh", Name: "the box", Site: "delft", Labels: map[string]string{"rack": "b", "cpu": "new"}}},
	}
}

func TestOf(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.toml", "a.txt", "x$(y).toml", "b.d/c.toml"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	app := &cli.App{Commands: []*cli.Command{
		{Name: "status", Usage: "show one job", Flags: []cli.Flag{&cli.BoolFlag{Name: "json"}}},
		{Name: "cancel", Flags: []cli.Flag{&cli.StringFlag{Name: "name"}, &cli.StringFlag{Name: "node"}}},
		{Name: "ps", Flags: []cli.Flag{&cli.StringFlag{Name: "state"}, &cli.IntFlag{Name: "n", Aliases: []string{"limit"}, Usage: "only `N`"}, &cli.BoolFlag{Name: "hidden", Hidden: true}}},
		{Name: "run", Flags: []cli.Flag{&cli.StringFlag{Name: "net"}, &cli.StringFlag{Name: "i"}, &cli.StringFlag{Name: "d", Aliases: []string{"dependency"}}, &cli.StringFlag{Name: "where"}, &cli.BoolFlag{Name: "mpi"}}},
		{Name: "exec", Flags: []cli.Flag{&cli.BoolFlag{Name: "pty"}}},
		{Name: "check", Flags: []cli.Flag{&cli.BoolFlag{Name: "mpi"}}},
		{Name: "rm"}, {Name: "rtt"}, {Name: "completion"}, {Name: "man"}, {Name: "lead", Hidden: true},
	}}
	for line, want := range map[string]string{
		"":                           "status cancel ps run exec check rm rtt completion man",
		"st":                         "status",
		"help r":                     "run rm rtt",
		"nosuch ":                    "",
		"status ":                    "aaaaa@zeb2a bbbbb@zeb2a ccccc@zeb2a ddddd@zeb2a eeeee@zeb2a fffff@zeb2a train last",
		"status tr":                  "train",
		"status --json aaa":          "aaaaa@zeb2a",
		"status last ":               "",
		"cancel last ":               "aaaaa@zeb2a bbbbb@zeb2a train last",
		"cancel --name ":             "train a:b", // what means something to a shell is left out
		"cancel --node /sock tr":     "train",
		"rm ":                        "ccccc@zeb2a ddddd@zeb2a eeeee@zeb2a fffff@zeb2a train last",
		"ps -":                       "--state -n --limit",
		"ps --state p":               "pending",
		"ps --state=ru":              "--state=running",
		"ps -n ":                     "",
		"run --net ":                 "host job none",
		"run -i ":                    "",
		"run --mpi -":                "--net -i -d --dependency --where --mpi",
		"run --mpi prog -":           "",
		"run -- ":                    "",
		"run a.toml --m":             "--mpi",
		"run a.toml -- --m":          "",
		"check ":                     "a.toml b.d/",
		"check a":                    "a.toml",
		"check --mpi a":              "a.toml",
		"check a.toml ":              "",
		"check a.toml --":            "--mpi",
		"check b.d/":                 "b.d/c.toml",
		"run -d aftern":              "afternotok:",
		"run -d afterok:tr":          "afterok:train",
		"run -d afterok:x,afterany:": "afterok:x,afterany:aaaaa@zeb2a afterok:x,afterany:bbbbb@zeb2a afterok:x,afterany:ccccc@zeb2a afterok:x,afterany:ddddd@zeb2a afterok:x,afterany:eeeee@zeb2a afterok:x,afterany:fffff@zeb2a afterok:x,afterany:train afterok:x,afterany:last",
		"run --where labels":         "labels.rack labels.cpu",
		"exec --pty tr":              "train",
		"exec train l":               "",
		"rtt ":                       "zeb2a here zabcd self",
		"man sta":                    "status",
		"completion z":               "zsh",
	} {
		var got []string
		for _, c := range Of(app, known{}, strings.Split(line, " ")) {
			got = append(got, c.Word)
		}
		if text := strings.Join(got, " "); text != want && !(strings.HasPrefix(line, "run --where") && len(text) == len(want)) {
			t.Errorf("%q: got %q, want %q", line, text, want)
		}
	}
	if got := Of(app, known{}, []string{"ps", "-n"}); len(got) != 1 || got[0].Help != "only N" {
		t.Errorf("got %+v", got)
	}
}

func TestAddress(t *testing.T) {
	for line, want := range map[string][2]string{
		"ps --node /s":                        {"/s", ""},
		"ps --state running --state-dir=/d x": {"", "/d"},
		"run -- prog --node /s":               {},
		"run --node":                          {},
	} {
		if node, state := Address(strings.Fields(line)); [2]string{node, state} != want {
			t.Errorf("%s: got %s, %s", line, node, state)
		}
	}
}
