package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"zorilla/internal/seeds"
)

// Nodes are ordinary users' mostly: where the tests run as root, those of what
// confines workers run as one, too. For the race detector that is the same twice.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("this user is one: the tests that are meant run anyway")
		return
	}
	if seeds.Raced {
		t.Skip("without the race detector this runs")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, tmp := filepath.Join(dir, "process.test"), filepath.Join(dir, "tmp")
	b, err := os.ReadFile(exe)
	if err == nil {
		err = os.WriteFile(program, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, strangerUID, strangerUID); err != nil {
		t.Fatal(err)
	}
	for p := dir; p != "/tmp" && len(p) > 1; p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-test.run", "TestRanks|TestEnter|TestWithoutNetwork|TestAmong|TestNoNetwork|TestAttacks|TestForkBomb|TestWorkerKills|TestHoarded|TestMemoryOn|TestSignalsTo|TestLimitsOf|TestFilesOutside|TestDevices|TestSettings|TestPrograms|Shown|LinksIn|OfAJob|TestHowWorkersEnd|TestMachineInProc|TestProbe|TestDisk|TestMeasure|NobodyPasses")
	cmd.Dir, cmd.Env = tmp, []string{"PATH=/usr/bin:/bin", "TMPDIR=" + tmp, "HOME=" + tmp, "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(strangerUID), Gid: uint32(strangerUID)}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
