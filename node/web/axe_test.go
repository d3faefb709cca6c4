package web

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"zorilla/jobs"
)

// The checker of accessibility: it is no part of the program, and not in this repository.
const (
	axeVersion = "4.10.3"
	axeSum     = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb" // of axe.min.js
)

// axe returns axe-core: of $AXE_CORE, or of npm, which is asked once for each user. Where
// neither is, the test fails and says how to get it; AXE_CORE=none does without.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("AXE_CORE")
	if path == "none" {
		t.Skip("AXE_CORE=none: nobody checks how accessible the page is")
	}
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = os.TempDir()
		}
		path = filepath.Join(cache, "zorilla-tests", "axe-"+axeVersion+".min.js")
		if _, err := os.Stat(path); err != nil {
			if err := npmPack(t, path); err != nil {
				t.Fatalf("no axe-core %s: %v; with npm elsewhere: 'npm install axe-core@%s' and AXE_CORE=node_modules/axe-core/axe.min.js; to do without: AXE_CORE=none", axeVersion, err, axeVersion)
			}
		}
	}
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(script); hex.EncodeToString(sum[:]) != axeSum {
		t.Fatalf("%s is not axe.min.js of axe-core %s", path, axeVersion)
	}
	return string(script)
}

// npmPack has npm fetch the package, and keeps the one file of it.
func npmPack(t *testing.T, path string) error {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "pack", "--silent", "axe-core@"+axeVersion)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack: %w: %.300s", err, out)
	}
	f, err := os.Open(filepath.Join(dir, "axe-core-"+axeVersion+".tgz"))
	if err != nil {
		return err
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for files := tar.NewReader(packed); ; {
		h, err := files.Next()
		if err != nil {
			return errors.Join(errors.New("no axe.min.js in the package"), err)
		}
		if h.Name != "package/axe.min.js" {
			continue
		}
		script, err := io.ReadAll(io.LimitReader(files, 4<<20))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err != nil {
			return err
		}
		return copyInto(path, script)
	}
}

// copyInto writes a file in one step, since other tests may do the same.
func copyInto(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".axe")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close(), os.Rename(f.Name(), path))
}

// Every page can be used by everybody, as far as a program can tell: wide and narrow, light
// and dark, with all that is folded away unfolded.
func TestAccessibility(t *testing.T) {
	script := axe(t)
	f, st, _ := harvest(t)
	busy := scene()
	for _, id := range busy.list {
		f.jobs[id] = busy.jobs[id]
		f.list = append(f.list, id)
	}
	f.self, f.nodes, f.queue = busy.self, busy.nodes, busy.queue
	st.Spec.Env = map[string]string{"A_TOKEN": "x", "LANG": "C"}
	st.Spec.Inputs = st.Outputs[0].Manifest
	st.Array = nil
	f.put(st)
	sweep := sample("sweep@zaaaa", jobs.Failed, f.nodes, 2, time.Minute, "./sweep")
	sweep.Array, sweep.Spec.Array = &jobs.ArrayStatus{Tasks: 100, Done: 100, Failed: 5}, &jobs.Array{}
	f.put(sweep)
	f.jobs[sweep.ID].codes = make([]int8, 100)
	copy(f.jobs[sweep.ID].codes[30:], []int8{1, 2, 3, 4, 5})
	srv := serve(t, f)
	b := chromium(t)
	for _, size := range []int64{1400, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(size, 900, size < 500, scheme)
			b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
			for _, path := range []string{"/", "/?q=train&state=failed", "/timeline", "/nodes/" + string(nodeID(7)), "/jobs/" + runningJob, "/jobs/" + waitingJob, "/jobs/" + failedJob, "/jobs/a2b3c", "/jobs/sweep", "/jobs/none"} {
				b.run("open", chromedp.Navigate(srv.URL+path))
				if path != "/jobs/none" {
					b.wait(`/live|ended/.test(document.querySelector("#live").textContent)`)
				}
				got := b.do(script + `;
					document.querySelectorAll("details").forEach((d) => { d.open = true; });
					await new Promise(requestAnimationFrame);
					const found = await axe.run(document, { resultTypes: ["violations"] });
					return found.violations.map((v) => v.id + " (" + v.impact + "): " + v.nodes.map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? n.failureSummary)).slice(0, 3).join("; ")).join("\n")`)
				if strings.TrimSpace(got) != "" {
					t.Errorf("%s, %d wide, %s:\n%s", path, size, scheme, got)
				}
				if wide := b.ask(`document.documentElement.scrollWidth`); wide != fmt.Sprint(size) {
					t.Errorf("%s with all unfolded is %s wide on a screen of %d", path, wide, size)
				}
			}
		}
	}
}
