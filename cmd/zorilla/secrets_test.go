package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSecretsAmongArguments(t *testing.T) {
	for line, want := range map[string]map[int]int{
		"zorilla":                               {},
		"zorilla node":                          {},
		"zorilla node --join zor1.x --slots 2":  {3: 0},
		"zorilla node --join h:1,zor1.x":        {3: 0},
		"zorilla node --join h:1 --join=h:2":    {},
		"zorilla node -join=zor1.x --secret y":  {2: 6, 4: 0},
		"zorilla node --secret=a=b --join":      {2: 9},
		"zorilla node --secret --join zor1.x":   {3: 0, 4: 0},
		"zorilla node --secret":                 {},
		"zorilla node --secret-file f join x y": {},
		"zorilla run -- prog --secret x":        {},
	} {
		if got := secretsIn(strings.Fields(line)); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

func TestSecretFilesAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for size, fits := range map[int]bool{maxSecretFile: true, maxSecretFile + 1: false} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := readOwn(path); (err == nil) != fits || fits && len(b) != size {
			t.Errorf("of %d bytes: %d, %v", size, len(b), err)
		}
	}
}

// The address of a page opens the node: on a process list it has no token.
func TestTokensAmongArguments(t *testing.T) {
	for line, want := range map[string]map[int]int{
		"zorilla ps --node http://127.0.0.1:5446/?token=abc": {3: 29},
		"zorilla ps --node=http://h/?token=abc":              {2: 23},
		"zorilla ps -node=https://h/?token=":                 {2: 23},
		"zorilla ps --node /run/zorilla.sock":                {},
		"zorilla run -- grep /?token= f":                     {},
		"zorilla run -- curl http://h/?token=abc":            {4: 16},
		"zorilla node --node http://h/?token=abc":            {3: 16},
	} {
		if got := secretsIn(strings.Fields(line)); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// Neither a node's arguments nor anything that it starts shows its secrets.
func TestSecretsAreOnNoProcessList(t *testing.T) {
	t.Parallel()
	const phrase = "a phrase for TestSecretsAreOnNoProcessList"
	g := newGate(t)
	network := &realNetwork{dir: passedDir(t), nodes: map[int]*realNode{}}
	t.Cleanup(network.stop)
	first, err := network.start(1, nodeEnv(), []string{"--slots", "1", "--secret", phrase, "--expose", g.dir})
	if err != nil {
		t.Fatal(err)
	}
	token := network.invite
	network.invite = ""
	if _, err := network.start(2, nodeEnv(), []string{"--slots", "1", "--join=" + token, "--expose", g.dir}); err != nil {
		t.Fatal(err)
	}
	network.invite = token
	if _, err := network.start(3, nodeEnv(), []string{"--slots", "1", "--expose", g.dir}); err != nil { // by ZORILLA_JOIN
		t.Fatal(err)
	}
	first.knows(t, 3)
	job := first.says(t, "submit", "-n", "3", "sh", "-c", g.wait())
	first.job(t, "last", "running", allRun(3))
	lines := 0
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		line, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			continue // it has ended
		}
		lines++
		text := string(line)
		var pid int
		fmt.Sscanf(filepath.Base(dir), "%d", &pid)
		// The nodes themselves were given ZORILLA_JOIN, as is a child of theirs until it has its own program.
		if env, err := os.ReadFile(dir + "/environ"); err == nil && !strings.Contains(text, "zorilla\x00node\x00") {
			text += string(env)
		}
		if strings.Contains(text, token) || strings.Contains(text, phrase) {
			t.Errorf("process %d shows a secret: %q", pid, strings.ReplaceAll(string(line), "\x00", " "))
		}
		if pid == first.process.Pid && !strings.Contains(text, "--secret\x00"+strings.Repeat(".", len(phrase))) {
			t.Errorf("the first node's line is %q", text)
		}
	}
	if lines < 6 {
		t.Errorf("%d processes were looked at", lines)
	}
	g.open(t)
	first.job(t, job, "COMPLETED", inState("COMPLETED"))
}

// The tokens are printed when a node is started for the first time, to a
// terminal, and nowhere else.
func TestTokensAreShownOnceAndToATerminalOnly(t *testing.T) {
	t.Parallel()
	dir := passedDir(t)
	for _, c := range []struct {
		state    string
		terminal bool
		want     bool
	}{{"a", true, true}, {"a", true, false}, {"b", false, false}} {
		state := filepath.Join(dir, c.state)
		cmd := zorilla(t, state, "node", "--state", state, "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0")
		cmd.Env = append(nodeEnv(), "TERM=dumb")
		var printed *os.File
		if c.terminal {
			printed, cmd.Stdout = pseudoterminal(t)
		} else {
			var w *os.File
			var err error
			if printed, w, err = os.Pipe(); err != nil {
				t.Fatal(err)
			}
			cmd.Stdout = w
		}
		cmd.Stderr = cmd.Stdout // whatever it logs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmd.Stdout.(*os.File).Close()
		text, lines := "", bufio.NewReader(printed)
		time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		for !strings.Contains(text, "page   ") {
			line, err := lines.ReadString('\n')
			if text += line; err != nil {
				t.Fatalf("%v after %q", err, text)
			}
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		for err := error(nil); err == nil; { // a terminal ends with EIO
			var line string
			line, err = lines.ReadString('\n')
			text += line
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		printed.Close()
		for _, secret := range []string{"zor1.", "?token="} {
			if strings.Contains(text, secret) != c.want {
				t.Errorf("terminal %t, state %s: want %s: %t\n%s", c.terminal, c.state, secret, c.want, text)
			}
		}
		if !c.want && (!strings.Contains(text, "'zorilla invite' prints") || !strings.Contains(text, "'zorilla web' prints")) {
			t.Errorf("it does not say how to get the tokens:\n%s", text)
		}
	}
}

// pseudoterminal opens a pseudoterminal: what is written to it can be read from
// printed.
func pseudoterminal(t *testing.T) (printed, it *os.File) {
	t.Helper()
	printed, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(printed.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(printed.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	it, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return printed, it
}

// Nobody of its user reads what a node has in memory, or in its environment: the files
// that would show it are not the user's.
func TestNodeIsGuarded(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("zorilla")
	if err != nil {
		t.Fatal(err)
	}
	// By another process: what this one has open to write while it forks cannot be executed.
	if out, err := exec.Command("install", "-m", "755", program, filepath.Join(dir, "zorilla")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	listen, err := addresses.Free("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	cmd := exec.Command(filepath.Join(dir, "zorilla"), "node", "--state", filepath.Join(dir, "state"), "--listen", listen, "--web", "none")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	cmd.Env = nodeEnv()
	stdout, _ := start(t, cmd)
	expect(t, stdout, "zorilla invite")
	var st syscall.Stat_t
	if err := syscall.Stat(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid), &st); err != nil || st.Uid != 0 {
		t.Errorf("its environment is that of user %d, %v", st.Uid, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ends(t, cmd, 0)
}
