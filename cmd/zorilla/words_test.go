package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zorilla/internal/reserved"
	"zorilla/jobs"
	"zorilla/node/api/apitest"
	"zorilla/transfer"
)

// hostileLines are typed at a home where everything of others means ill: of every command what
// makes it read their words. OWN and THEIRS are jobs of this node and of another one, LINKED one
// whose outputs have a link, EVIL a script, STATE a state directory that others can write.
// A new command must be here.
var hostileLines = map[string][]string{
	"check":      {"check EVIL.toml"},
	"run":        {"run EVIL", "run -q EVIL", "run EVIL.toml", "run EVIL.toml -q -- --trust-script", "run -o * -- true", "run -o .* --into .ssh --force -- true"},
	"submit":     {"submit EVIL", "submit EVIL.toml", "submit -- EVIL.toml", "submit -o .ssh -o * -- true"},
	"attach":     {"attach PLAIN", "attach OWN", "attach THEIRS", "attach LINKED", "attach --force OWN", "attach --force --follow-output THEIRS", "attach --force --into . THEIRS", "attach --into .config/zorilla OWN"},
	"wait":       {"wait --fetch OWN", "wait --fetch --force THEIRS", "wait --fetch --force --into . OWN", "wait --fetch LINKED", "wait --fetch PLAIN"},
	"get":        {"get OWN", "get THEIRS", "get LINKED", "get --force OWN", "get --force THEIRS", "get --force --into . THEIRS * .*", "get --force --into .ssh OWN *", "get --force THEIRS .ssh .bash_login", "get --now OWN", "get PLAIN", "get --force PLAIN"},
	"ls":         {"ls OWN", "ls THEIRS *", "ls --json THEIRS", "ls LINKED"},
	"rerun":      {"rerun THEIRS", "rerun --failed THEIRS"},
	"exec":       {"exec THEIRS true", "exec --stdin none OWN true"},
	"rsh":        {"rsh THEIRS true"},
	"alloc":      {"alloc -n 0 true"},
	"lead":       {"LEAD"},
	"ps":         {"ps", "ps --members", "ps --json"},
	"status":     {"status OWN", "status THEIRS", "status --json THEIRS", "status"},
	"logs":       {"logs OWN", "logs THEIRS"},
	"cancel":     {"cancel THEIRS"},
	"resize":     {"resize THEIRS", "resize OWN 2"},
	"move":       {"move THEIRS:0", "move OWN:0 OWN:1 self"},
	"checkpoint": {"checkpoint", "checkpoint --epoch 3 STATE"},
	"explain":    {"explain OWN", "explain -v THEIRS"},
	"tasks":      {"tasks THEIRS"},
	"rm":         {"rm THEIRS"},

	"node": {"node --state-dir STATE --listen 127.0.0.1:0 --web none", "node --state-dir home-state --secret-file STATE/secret --listen 127.0.0.1:0 --web none"},
	"dev":  {"dev -n 0 true"},

	"nodes": {"nodes", "nodes --wide", "nodes --json", "nodes -v"}, "top": {"top"}, "rtt": {"rtt"}, "doctor": {"doctor"}, "drain": {"drain --undo"},
	"invite": {"invite"}, "web": {"web"}, "owner": {"owner"}, "pause": {"pause"}, "resume": {"resume"}, "cache": {"cache"},
	"completion": {"completion bash"}, "complete": {"COMPLETE get "}, "config": {"config", "config run"}, "man": {"man"}, "version": {"version"}, "help": {"help"},
}

// theirDir is where files of the job THEIRS go.
const theirDir = "evil__31m_job-"

// printsBytes are commands that print the bytes of a program, or of nobody, as they are.
var printsBytes = []string{"run", "attach", "logs", "exec", "rsh"}

// Words and names of others have no rights of the user's, whatever command reads them.
func TestHostileWordsAtEveryCommand(t *testing.T) {
	dir := reserved.Real(passedDir(t))
	home, hostile := filepath.Join(dir, "home"), filepath.Join(dir, "hostile")
	for _, d := range []string{home, home + "/.config", home + "/project", hostile} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(hostile, 0o777); err != nil {
		t.Fatal(err)
	}
	mine := map[string]string{home + "/.bashrc": "mine", home + "/project/x": "mine", hostile + "/secret": "a phrase of somebody else", hostile + "/owner.json": "{}"}
	for path, text := range mine {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(hostile+"/secret", 0o666); err != nil {
		t.Fatal(err)
	}
	f := newFakeNode(filepath.Join(dir, "state"))
	f.OnSubmit = func(j *apitest.Job) {
		s := j.Status()
		if len(s.Spec.Mounts) > 0 || s.Spec.OnEnd != "" || slices.ContainsFunc(s.Spec.Outputs, transfer.NamesHidden) && s.Spec.Args[0] != "true" {
			t.Errorf("submitted: %+v", s.Spec)
		}
		outputs := evilOutputs(t, f, "")
		j.Update(func(s *jobs.Status) { s.State, s.ExitCode, s.Outputs = jobs.Completed, 0, outputs })
	}
	names := hostileJobs(t, f)
	before, _ := f.Jobs(t.Context(), true)
	stop, err := serve(f, f.state)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	app := newApp(&console{}, nil)
	for _, cmd := range app.Commands {
		name := strings.TrimPrefix(cmd.Name, "__")
		lines := hostileLines[name]
		if len(lines) == 0 {
			t.Errorf("what others say is tried at no line of the command %s", cmd.Name)
		}
		for _, line := range lines {
			for _, script := range evilScripts(t, dir, line) {
				args := strings.Fields(strings.NewReplacer("OWN", names["OWN"], "THEIRS", names["THEIRS"], "LINKED", names["LINKED"], "PLAIN", names["PLAIN"], "EVIL", script, "STATE", hostile, "LEAD", leadName, "COMPLETE", cmd.Name).Replace(line))
				tryHostile(t, f, home, args, mine)
				if all, _ := f.Jobs(t.Context(), true); strings.Contains(line, "EVIL") && len(all) > len(before) {
					t.Error("it was submitted")
				}
				before, _ = f.Jobs(t.Context(), true)
				if t.Failed() {
					b, _ := os.ReadFile(args[len(args)-1])
					t.Fatalf("that was: zorilla %q, script: %s", args, b)
				}
			}
		}
	}
}

// tryHostile types a line at home, and looks at what has become of the home.
func tryHostile(t *testing.T, f *fakeNode, home string, args []string, mine map[string]string) {
	t.Helper()
	cmd := zorilla(t, f.state, args...)
	cmd.Dir = home
	cmd.Env = append(cmd.Env, "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "DISPLAY=", "TERM=dumb")
	if args[0] == "node" {
		cmd.Env = append(cmd.Env, realNodes+"=1")
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if args[0] == "node" && (err == nil || !strings.Contains(out.String(), "can be changed by others")) {
		t.Errorf("%v, %s", err, &out)
	}
	if args[0] == "attach" && len(args) == 2 && strings.HasPrefix(args[1], "t9pbc") { // otherwise nothing of this would mean anything
		if b, err := os.ReadFile(filepath.Join(home, theirDir+"t9pbc@zelse", "result")); err != nil || string(b) != "of THEIRS" {
			t.Errorf("their result is %q, %v\n%s", b, err, &out)
		}
	}
	if !slices.Contains(printsBytes, args[0]) && (strings.Contains(out.String(), "\x1b") || strings.Contains(out.String(), "\u202e") && !slices.Contains(args, "--json")) {
		t.Errorf("it prints %q", &out)
	}
	for path, text := range mine {
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%s is %q, %v", path, b, err)
		}
	}
	err = filepath.WalkDir(home, func(at string, d fs.DirEntry, err error) error {
		rest, _ := filepath.Rel(home, at)
		switch {
		case err != nil || at == home || mine[at] != "" || rest == ".config":
		case strings.HasPrefix(rest, theirDir) && slices.Contains(args, ".ssh"): // it was typed
		case transfer.Hidden(rest), strings.HasPrefix(rest, "bin"), d.Type()&fs.ModeSymlink != 0, strings.HasPrefix(rest, "project/"), rest == "out":
			t.Errorf("%s is there\n%s", rest, &out)
		case !d.IsDir() && !strings.HasPrefix(rest, theirDir) && args[0] != "run" && !slices.Contains(args, "."):
			if b, _ := os.ReadFile(at); string(b) == "of THEIRS" {
				t.Errorf("%s of another node's job is beside the user's own files\n%s", rest, &out)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, path := range []string{"result", theirDir + "t9pbc@zelse", theirDir + "p3v6a@zelse"} { // as every line finds it
		if err := os.RemoveAll(filepath.Join(home, path)); err != nil {
			t.Fatal(err)
		}
	}
}

// evilScripts are scripts that want what is their user's to give, one for each line that runs one.
func evilScripts(t *testing.T, dir, line string) (list []string) {
	if !strings.Contains(line, "EVIL") {
		return []string{"none"}
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("PRIVATE KEY"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, evil := range []struct{ words, keys string }{
		{"--on-end 'id >out'", "on-end = 'id >out'"}, {"-i " + dir + "/key:k", "input = '" + dir + "/key:k'"}, {"-i ..", "input = '..'"}, {"-i .bashrc", "i = ['.bashrc']"},
		{"-i .", "input = '.'"}, {"-o .bashrc --force", "output = ['.bashrc']\nforce = true"}, {"--mount /home:ro", "mount = '/home:ro'"}, {"--into / -e HOME", "into = '/'"},
		{"--key k", "key = 'k'"}, {"-e HOME", "env = ['A=1', 'HOME']"}, {"--stdin " + dir + "/key", "stdin = '" + dir + "/key'"}, {"--each-line " + dir + "/key", "each-line = '" + dir + "/key'"},
		{"--node " + dir, "node = '" + dir + "'"}, {"--trust-script --on-end id", "trust-script = true\non-end = 'id'"}, {"--on-end id", "[[group]]\nname = 'a'\nn = 1\ncommand = ['../key']"},
	} {
		script := filepath.Join(dir, "scripts", fmt.Sprintf("evil%d.sh", i))
		if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{script: "#!/bin/sh\n#ZORILLA " + evil.words + "\ntrue\n", script + ".toml": "command = ['true']\n" + evil.keys + "\n"} {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, script)
	}
	return list
}

// evilOutputs is a list of files that mean ill; whose are "of WHOSE".
func evilOutputs(t *testing.T, f *fakeNode, whose string, more ...transfer.Entry) []jobs.RankOutput {
	return namedOutputs(t, f, whose, []string{".bash_login", ".bashrc", ".config/zorilla/config.toml", ".config/autostart/x.desktop", ".ssh/authorized_keys", ".ssh/rc", "bin/ls", "project/.git/hooks/pre-commit", "result", "sub/.ssh/rc", "sub/.x"}, more...)
}

func namedOutputs(t *testing.T, f *fakeNode, whose string, names []string, more ...transfer.Entry) []jobs.RankOutput {
	put := transfer.PutterFunc(func(h transfer.Hash, b []byte) error { return f.PutChunk(t.Context(), h, b) })
	content := []byte("of " + whose)
	entries := slices.Clone(more)
	for _, path := range names {
		entries = append(entries, transfer.Entry{Path: path, Size: int64(len(content)), Chunks: transfer.HashList{transfer.HashOf(content)}})
	}
	m, err := transfer.NewManifest(entries)
	h := transfer.Hash{}
	if err == nil {
		err = put(transfer.HashOf(content), content)
	}
	if err == nil {
		h, err = transfer.SaveManifest(put, m)
	}
	if err != nil {
		t.Error(err)
	}
	return []jobs.RankOutput{{Rank: 0, Attempt: 1, Manifest: h, Files: len(entries)}}
}

// hostileJobs makes jobs whose every word means ill, and returns their IDs.
func hostileJobs(t *testing.T, f *fakeNode) map[string]string {
	ids := map[string]string{}
	for name, origin := range map[string]string{"OWN": string(f.Members[0].ID), "THEIRS": "zelsewhereaaaaaaaaaaaaaaaa", "LINKED": "zelsewhereaaaaaaaaaaaaaaaa", "PLAIN": "zelsewhereaaaaaaaaaaaaaaaa"} {
		st := apitest.Example()
		st.ID, st.State, st.ExitCode = jobs.ID(map[string]string{"OWN": "k7f3q", "THEIRS": "t9pbc", "LINKED": "m2wxh", "PLAIN": "p3v6a"}[name]+"@"+origin), jobs.Completed, 0
		st.Origin = st.ID.Origin()
		st.Spec.Name, st.Spec.Args = "evil\x1b[31m\u202ejob", []string{"./prog", "\x1b]0;title\a"}
		st.Spec.Stdin, st.Spec.Min, st.Spec.Max = false, 1, 1
		st.Spec.Mounts, st.Spec.OnEnd, st.Spec.Net = []string{"/home:ro"}, "id >out", jobs.NetHost
		st.Spec.Outputs = []string{"*", ".*", "**", ".ssh", "bin"}
		if name != "OWN" {
			st.Spec.Outputs = append(st.Spec.Outputs, "project/.git")
		}
		st.Reason, st.Warnings = "\x1b[2J", []string{"\u202ewarning\x1b[31m"}
		st.Workers = st.Workers[:1]
		st.Workers[0].Name = "there\x1b[31m"
		var more []transfer.Entry
		if name == "LINKED" {
			more = append(more, transfer.Entry{Path: "link", Link: "result"})
		}
		st.Outputs = evilOutputs(t, f, name, more...)
		if name == "PLAIN" { // nothing that is refused keeps its file from where the user's are
			st.Spec.Outputs = []string{"result"}
			st.Outputs = namedOutputs(t, f, "THEIRS", []string{"result"})
		}
		f.Add(st)
		ids[name] = string(st.ID)
	}
	return ids
}
