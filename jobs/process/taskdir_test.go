package process

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zorilla/jobs/sandbox"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// inputs puts files, and directories where a name ends in a slash, into Root/work.
func inputs(t testing.TB, spec Spec, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(spec.Root, workDir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(at, 0o755)
		} else {
			err = os.WriteFile(at, []byte(text), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// runTasks runs all tasks of a spec, which must not fail, and returns their
// results, output and files.
func runTasks(t testing.TB, spec Spec) (all []TaskResult, stdout, stderr []string, files []map[string]string) {
	t.Helper()
	w := start(t, Config{}, spec)
	w.Tasks().Add(0, []TaskRange{{0, spec.Tasks.IDs[0].Count()}}, true)
	if e := await(t, w); e.Code != 0 {
		t.Fatalf("exit %+v, %q", e, output(t, w, work.Stderr))
	}
	all, stdout, stderr = results(t, w)
	rest := output(t, w, work.Stderr)
	for _, r := range all {
		files = append(files, unpack(t, rest[r.Stderr:r.Stderr+r.Files]))
		rest = rest[r.Stderr+r.Files:]
	}
	return all, stdout, stderr, files
}

func unpack(t testing.TB, text string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if text == "" {
		return files
	}
	for r := transfer.NewPackReader(strings.NewReader(text)); ; {
		first := "" // chunk
		e, err := r.Next(transfer.PutterFunc(func(_ transfer.Hash, data []byte) error {
			if first == "" {
				first = string(data)
			}
			return nil
		}))
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[e.Path] = first; e.Size > transfer.ChunkSize {
			files[e.Path] = "large"
		}
	}
}

func TestTasksHaveDirectoriesOfTheirOwn(t *testing.T) {
	spec := array(t, 3, `ls -A . "$TMPDIR" made; cat data sub/deep; ./prog; echo $ZORILLA_TASK_ID >log; echo x >"$TMPDIR/x"; mkdir -p a/b made/c; touch a/b/c; chmod 0 a/b a "$TMPDIR"; exit 0`)
	spec.Tasks.Outputs = []string{"log", "made/*/*"}
	inputs(t, spec, map[string]string{"data": "text\n", "sub/deep": "deep\n", "prog": "#!/bin/sh\nmkdir made/$ZORILLA_TASK_ID; echo of $ZORILLA_TASK_ID >made/$ZORILLA_TASK_ID/f\n", "made/in": "i"})
	all, stdout, stderr, files := runTasks(t, spec)
	for i, r := range all {
		id := string(rune('1' + i))
		want := ".:\ndata\nmade\nprog\nsub\n\n" + spec.Root + "/tmp:\n\nmade:\nin\ntext\ndeep\n"
		if r.Code != 0 || stdout[i] != want || stderr[i] != "" {
			t.Errorf("task %s: %+v, %q, %q, want %q", id, r, stdout[i], stderr[i], want)
		}
		if f := files[i]; len(f) != 2 || f["log"] != id+"\n" || f["made/"+id+"/f"] != "of "+id+"\n" {
			t.Errorf("task %s left %q", id, f)
		}
	}
}

func TestTasksReadInputsOnly(t *testing.T) {
	harm := `echo bad >data; echo bad >>sub/deep; echo bad >sub/new; rm -f sub/deep; rm -rf data; mv sub other; echo mine >data; echo own >empty/own
if test $ZORILLA_TASK_ID = 2; then rm data; ln -s /etc/passwd data; rm -r empty; ln -s /etc empty; chmod 0 tree tree/new; exit; fi`
	if sandbox.LandlockVersion() > 0 {
		harm += `; chmod u+w ../work/data; echo bad >../work/data; rm -f ../work/data; mv ../work/data moved; ln -f ../work/data linked && echo bad >linked`
	}
	spec := array(t, 4, `cat data sub/deep; ls -A . sub empty tree; `+harm+`; cat data`)
	spec.Tasks.Outputs = []string{"tree/*.out"}
	inputs(t, spec, map[string]string{"data": "good\n", "sub/deep": "deep\n", "empty/": "", "tree/a": "", "tree/new/": ""})
	if err := os.Chmod(filepath.Join(spec.Root, workDir, "tree/a"), 0o644); err != nil { // the others are programs
		t.Fatal(err)
	}
	all, stdout, _, _ := runTasks(t, spec)
	for i := range all {
		want := "good\ndeep\n.:\ndata\nempty\nsub\ntree\n\nempty:\n\nsub:\ndeep\n\ntree:\na\nnew\n"
		if i != 1 {
			want += "mine\n"
		}
		if stdout[i] != want {
			t.Errorf("task %d: %q, want %q", i+1, stdout[i], want)
		}
	}
	for _, name := range []string{"", "sub", "sub/deep", "tree/a"} { // all that there is on kernels without Landlock
		if info, err := os.Stat(filepath.Join(spec.Root, workDir, name)); err != nil || info.Mode()&0o222 != 0 {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
	for name, want := range map[string]string{"data": "good\n", "sub/deep": "deep\n"} {
		if b, err := os.ReadFile(filepath.Join(spec.Root, workDir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

func TestTasksLeaveHostileThings(t *testing.T) {
	spec := array(t, 4, `case $ZORILLA_TASK_ID in
1) ln -s /etc/passwd passwd; ln -s ../spec spec; ln -s /etc etc; mkfifo pipe; mkdir d; ln -s ../../../.. d/up; ln d/up hard
   touch "$(printf 'a\nb')"; truncate -s 1T holes; d=d; for i in $(seq 120); do d=$d/d; done; mkdir -p $d; echo ok >ok;;
2) truncate -s 3T large; echo ok >ok;;
3) d=d/d/d/d/d/d/d/d/d/d; d=$d/$d/$d/$d/$d; for i in 1 2 3 4 5 6 7 8 9 10; do mkdir -p $d; cd $d; done; cd "$TMPDIR/../task" && rm -rf ../task/x ../tmp ../spec; chmod 0 d . "$TMPDIR";;
4) ls -A . "$TMPDIR"; echo ok >ok;;
esac`)
	spec.Tasks.Outputs = []string{"*"}
	inputs(t, spec, map[string]string{"in": "i"})
	all, stdout, stderr, files := runTasks(t, spec)
	if f := files[0]; len(f) != 2 || f["ok"] != "ok\n" || f["holes"] != "large" || all[0].Code != 0 || all[0].Files > 1000 {
		t.Errorf("first task: %+v, %q", all[0], f)
	}
	for _, part := range []string{`"passwd" is a symbolic link`, `"spec" is a sym`, `"etc" is a sym`, `"pipe" is a named pipe`, `"d/up" is a sym`, "control character", "is deeper than"} {
		if !strings.Contains(stderr[0], "zorilla: warning: task 1: output") || !strings.Contains(stderr[0], part) {
			t.Errorf("first task says %q, want %s", stderr[0], part)
		}
	}
	if all[1].Code != 125 || all[1].Files != 0 || !strings.Contains(stderr[1], `zorilla: task 2: its outputs are lost: output "large": 3298534883328 bytes, at most`) {
		t.Errorf("second task: %+v, %q", all[1], stderr[1])
	}
	if want := ".:\nin\n\n" + spec.Root + "/tmp:\n"; stdout[3] != want || files[3]["ok"] != "ok\n" {
		t.Errorf("fourth task: %q, %q, want %q", stdout[3], files[3], want)
	}
}

func TestTaskDirIsPlanned(t *testing.T) {
	spec := script(t, "")
	spec.Tasks = &TaskSpec{Outputs: []string{"a/*.out", "b*/c/x", "*.txt"}}
	inputs(t, spec, map[string]string{"a/1": "", "a/s/2": "", "b7/c/3": "", "b7/d/4": "", "bx/c/5": "", "e/": "", "f": "", "s/t/6": ""})
	for _, name := range []string{TaskDir, tmpDir} {
		if err := os.MkdirAll(filepath.Join(spec.Root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := newTaskDir(&spec)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.close()
	var got []string
	for _, e := range dir.made.Entries {
		if e.Dir {
			e.Path += "/"
		}
		got = append(got, e.Path)
	}
	want := []string{"a/", "a/1", "a/s", "b7/", "b7/c/", "b7/c/3", "b7/d", "bx/", "bx/c/", "bx/c/5", "e/", "f", "s"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := dir.fill(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/1", "b7/c/3", "s/t/6"} {
		if _, err := os.Stat(filepath.Join(dir.own, name)); err != nil {
			t.Error(err)
		}
	}
}

// Files that no pattern names are taken along as far as they are few and small, of a task and of
// all tasks together; of others it is told how many tasks left some.
func TestTasksLeaveWhatNobodyHasAskedFor(t *testing.T) {
	if spec := (&TaskSpec{}); spec.takesFiles() || spec.resultSize() != 32 {
		t.Error("results of tasks without patterns and limits have changed")
	}
	spec := array(t, 9, `case $ZORILLA_TASK_ID in
1) echo one >result; mkdir -p sub/d .hidden __pycache__; echo deep >sub/d/more; : >.hidden/x; : >__pycache__/y; : >.z; ln -s /etc/passwd link; mkfifo pipe;;
2) rm in; ls empty;;
3) echo a >a; echo b >b; echo c >c;;
4) head -c 1001 /dev/zero >large;;
5) head -c 900 /dev/zero >almost;;
6) echo good >good; echo bad >"$(printf 'x\ny')";;
7) head -c 900 /dev/zero >toomuch;;
8) echo small >empty/small;;
9) echo x >.x; mkdir nothing; exit 3;;
esac`)
	spec.Tasks.Left = &LeftLimit{Files: 2, Bytes: 1000, All: 2500}
	inputs(t, spec, map[string]string{"in": "i", "empty/": ""})
	w := start(t, Config{}, spec)
	w.Tasks().Add(0, []TaskRange{{0, 9}}, true)
	e := await(t, w)
	if e.Left == nil || *e.Left != (work.Left{Tasks: 4, Task: 3, Name: "a"}) {
		t.Errorf("it was told of %+v", e.Left)
	}
	all, _, stderr := results(t, w)
	rest := output(t, w, work.Stderr)
	for i, want := range []string{"result: one\n, sub/d/more: deep\n", "", "", "", "almost: ...", "good: good\n", "", "empty/small: small\n", ""} {
		r := all[i]
		files := unpack(t, rest[r.Stderr:r.Stderr+r.Files])
		rest = rest[r.Stderr+r.Files:]
		var got []string
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if len(files[name]) == 900 {
				files[name] = "..."
			}
			got = append(got, name+": "+files[name])
		}
		if text := strings.Join(got, ", "); text != want || stderr[i] != "" {
			t.Errorf("task %d left %q, want %q, and says %q", i+1, text, want, stderr[i])
		}
	}
}
