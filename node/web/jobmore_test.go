package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/chromedp"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// leave gives a rank of a job output files.
func (f *fake) leave(t *testing.T, st *jobs.Status, rank int, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	size := int64(0)
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		size += int64(len(text))
	}
	m, _, err := transfer.Collect(t.Context(), f.store, dir, st.Spec.Outputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := transfer.SaveManifest(f.store, m)
	if err != nil {
		t.Fatal(err)
	}
	st.Outputs = append(st.Outputs, jobs.RankOutput{Rank: rank, Attempt: 1, Manifest: h, Files: m.Files(), Bytes: size})
}

// harvest is a job with output files of two ranks, one of them of several chunks.
func harvest(t *testing.T) (f *fake, st jobs.Status, large string) {
	t.Helper()
	f = newFake(network(3))
	var b strings.Builder
	for i := range 5 << 16 {
		fmt.Fprintf(&b, "%015d\n", i)
	}
	large = b.String()
	st = sample("a2b3c@zaaaa", jobs.Completed, f.nodes, 2, time.Hour, "./prog")
	st.Spec.Outputs = []string{"out*", "d/e/*"}
	f.leave(t, &st, 0, map[string]string{"out.bin": large, `out we"ird <b>;ü%2f.html`: "<script>alert(1)</script>"})
	f.leave(t, &st, 1, map[string]string{"out.bin": "of rank 1", "d/e/f": "deep", "out.empty": ""})
	f.put(st)
	return f, st, large
}

func TestOutputFilesAreListedAndSent(t *testing.T) {
	f, st, large := harvest(t)
	srv := serve(t, f)
	v := newPage(t, f).views.job(t.Context(), st, 0)
	if len(v.Outputs.Rows) != 5 || v.Outputs.Sum != "5 files, 5 MiB" || v.Outputs.None {
		t.Fatalf("%+v", v.Outputs)
	}
	want := map[string]string{"0 out.bin": large, `0 out we"ird <b>;ü%2f.html`: "<script>alert(1)</script>", "1 out.bin": "of rank 1", "1 d/e/f": "deep", "1 out.empty": ""}
	for _, row := range v.Outputs.Rows {
		res, body := ask(t, srv, "GET", row.Href, nil)
		text, ok := want[row.Rank+" "+row.Name]
		if !ok || res.StatusCode != 200 || body != text {
			t.Errorf("%s: %s, %d bytes, want %d", row.Href, res.Status, len(body), len(text))
		}
		kind, what, err := mime.ParseMediaType(res.Header.Get("Content-Disposition"))
		if err != nil || kind != "attachment" || what["filename"] != filepath.Base(row.Name) {
			t.Errorf("%s is saved as %q (%v)", row.Name, res.Header.Get("Content-Disposition"), err)
		}
		if h := res.Header; h.Get("Content-Type") != "application/octet-stream" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != policy || h.Get("Content-Length") != fmt.Sprint(len(text)) {
			t.Errorf("%s comes with %v", row.Name, h)
		}
		if res, body := ask(t, srv, "HEAD", row.Href, nil); res.StatusCode != 200 || body != "" {
			t.Errorf("HEAD of %s: %s", row.Href, res.Status)
		}
		if res, _ := ask(t, srv, "GET", row.Href, map[string]string{"Cookie": "none=1"}); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a cookie %s is sent: %s", row.Href, res.Status)
		}
		delete(want, row.Rank+" "+row.Name)
	}
	for _, path := range []string{"0/out.none", "2/out.bin", "-1/out.bin", "x/out.bin", "0/", "1/d", "1/d/e", "0/..%2f..%2fetc%2fpasswd", "0/%2e%2e/1/out.bin", "0//etc/passwd", "99999999999999999999/out.bin"} {
		if res, body := ask(t, srv, "GET", "/jobs/a2b3c/files/"+path, nil); res.StatusCode == 200 || strings.Contains(body, "of rank 1") || strings.Contains(body, "root:") {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	st.Forgotten = time.Now()
	f.put(st)
	if res, _ := ask(t, srv, "GET", "/jobs/a2b3c/files/1/out.bin", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("what is forgotten is sent: %s", res.Status)
	}
	if v := newPage(t, f).views.job(t.Context(), st, 0); len(v.Outputs.Rows) > 0 || v.Outputs.Note != "They are not kept any more." {
		t.Errorf("what is forgotten is listed: %+v", v.Outputs)
	}
}

// lossy is a node whose disk loses a chunk.
type lossy struct {
	*fake
	lost atomic.Value // a transfer.Hash
}

func (s *lossy) Chunk(ctx context.Context, job string, h transfer.Hash) ([]byte, error) {
	if h == s.lost.Load() {
		return []byte("something else"), nil
	}
	return s.fake.Chunk(ctx, job, h)
}

// A file that cannot be read to its end is no shorter file; what no output pattern names is
// never sent.
func TestDamagedOutputIsNotSent(t *testing.T) {
	f, st, large := harvest(t)
	s := &lossy{fake: f}
	s.lost.Store(transfer.HashOf([]byte(large[len(large)-1<<20:])))
	srv := serveService(t, s)
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/jobs/a2b3c/files/0/out.bin", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(signedIn(t, srv))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err == nil || len(got) >= len(large) {
		t.Errorf("%d bytes came, and no error", len(got))
	}
	s.lost.Store(st.Outputs[1].Manifest)
	if res, _ := ask(t, srv, "GET", "/jobs/a2b3c/files/1/out.bin", nil); res.StatusCode == 200 {
		t.Errorf("with a damaged list: %s", res.Status)
	}
	s.lost.Store(transfer.Hash{})
	st.Spec.Outputs = []string{"other"}
	f.put(st)
	if res, body := ask(t, srv, "GET", "/jobs/a2b3c/files/1/out.bin", nil); res.StatusCode == 200 || strings.Contains(body, "of rank 1") {
		t.Errorf("what no pattern names: %s", res.Status)
	}
}

// deaf is a node that is asked for lists of an origin that does not answer.
type deaf struct {
	*fake
	asked atomic.Int32
}

func (s *deaf) Chunk(ctx context.Context, _ string, _ transfer.Hash) ([]byte, error) {
	s.asked.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A page does not wait for long for lists of files that do not come, and does not ask for
// them all the time.
func TestListsThatDoNotCome(t *testing.T) {
	f, st, _ := harvest(t)
	for i := range 150 {
		st.Outputs = append(st.Outputs, jobs.RankOutput{Rank: i + 2, Files: 1, Manifest: transfer.HashOf([]byte{byte(i)})})
	}
	st.Spec.Inputs = transfer.HashOf([]byte("inputs"))
	synctest.Test(t, func(t *testing.T) {
		s := &deaf{fake: f}
		page := newPage(t, s)
		start := time.Now()
		v := page.views.job(t.Context(), st, 0)
		if took := time.Since(start); took > 3*listWait || s.asked.Load() > 3 {
			t.Errorf("the page took %v and asked %d times", took, s.asked.Load())
		}
		if v.Outputs.Note != "The list of 152 ranks cannot be read at the moment." || v.Outputs.Sum == "" || v.Inputs.Note == "" {
			t.Errorf("it says %+v, %+v", v.Outputs, v.Inputs)
		}
	})
	page := newPage(t, f) // and here they are
	if v := page.views.job(t.Context(), st, 0); len(v.Outputs.Rows) != 5 {
		t.Errorf("%d files", len(v.Outputs.Rows))
	}
}

func TestSecretsStayAtTheNode(t *testing.T) {
	f := newFake(network(2))
	st := sample("a2b3c@zaaaa", jobs.Running, f.nodes, 1, time.Minute, "x")
	st.Spec.Env = map[string]string{"OMP_NUM_THREADS": "4", "LANG": "C.UTF-8", "PYTHONPATH": "lib<b>"}
	for i, name := range []string{"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "MYPASSWD", "api_key", "MY_AUTH", "GOOGLE_CREDENTIALS", "SSH_PRIVATE", "PGPWD", "COOKIE", "LM_LICENSE_FILE", "SENTRY_DSN"} {
		st.Spec.Env[name] = fmt.Sprintf("classified%d", i)
	}
	st.Spec.Env["URL"] = "https://me:classified@example.org/"
	st.Spec.Env["PEM"] = "-----BEGIN KEY----- classified"
	st.Spec.Env["X"] = "ghp_classified"
	f.put(st)
	srv := serve(t, f)
	view, err := json.Marshal(newPage(t, f).views.job(t.Context(), st, 0))
	if err != nil {
		t.Fatal(err)
	}
	_, body := ask(t, srv, "GET", "/jobs/a2b3c", nil)
	for what, text := range map[string]string{"page": body, "stream": string(view)} {
		if strings.Contains(text, "classified") {
			t.Errorf("the %s tells a secret: %.60s", what, text[strings.Index(text, "classified")-40:])
		}
		for _, want := range []string{"OMP_NUM_THREADS", "C.UTF-8", "GITHUB_TOKEN", "PEM"} {
			if !strings.Contains(text, want) {
				t.Errorf("the %s lacks %s", what, want)
			}
		}
	}
}

func TestCommandsFitTheJob(t *testing.T) {
	nodes := network(2)
	for _, c := range []struct {
		state  jobs.State
		change func(*jobs.Status)
		want   string
	}{
		{jobs.Running, func(*jobs.Status) {}, "logs -f, get --now, explain, cancel"},
		{jobs.Pending, func(st *jobs.Status) { st.Spec.Outputs = nil }, "logs -f, explain, cancel"},
		{jobs.Completed, func(*jobs.Status) {}, "logs, get, rerun, explain"},
		{jobs.Failed, func(st *jobs.Status) { st.Array = &jobs.ArrayStatus{Tasks: 9, Failed: 2} }, "logs, get, rerun, rerun --failed, explain"},
		{jobs.Completed, func(st *jobs.Status) { st.Array = &jobs.ArrayStatus{Tasks: 9} }, "logs, get, rerun, explain"},
		{jobs.Failed, func(st *jobs.Status) { st.Forgotten = time.Now() }, "explain"},
	} {
		st := sample("a2b3c@zaaaa", c.state, nodes, 1, time.Minute, "x")
		c.change(&st)
		var got []string
		for _, cmd := range commands(&st) {
			text := strings.TrimPrefix(cmd.Text, "zorilla ")
			got = append(got, strings.TrimSuffix(text, " a2b3c@zaaaa"))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", c.state, text, c.want)
		}
	}
}

func TestJobPageInChromium(t *testing.T) {
	f, st, _ := harvest(t)
	st.Spec.Env = map[string]string{"A_TOKEN": "x", "LANG": "C"}
	st.Workers[1].Exit = &work.Exit{Code: 137, Cause: work.Memory, Detail: "needed more than 191 MiB"}
	st.State = jobs.Failed
	f.put(st)
	srv := serve(t, f)
	b := chromium(t)
	b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
	b.run("open", chromedp.Navigate(srv.URL+"/jobs/a2b3c"))
	b.wait(`document.querySelector("#live").textContent === "ended"`)
	b.wait(`document.querySelectorAll(".outputs tbody tr").length === 5 && !document.querySelector(".outputs b")`)
	b.wait(`document.querySelector(".workers").innerText.includes("needed more than 191 MiB")`)
	b.wait(`document.querySelector(".env").textContent.includes("A_TOKEN") && !document.querySelector(".env").checkVisibility({contentVisibilityAuto: true})`)
	if got := b.do(`return (await Promise.all([...document.querySelectorAll(".outputs a")].map((a) => fetch(a.href).then((r) => r.text())))).map((t) => t.length).join()`); !regexp.MustCompile(`^(\d+,){4}\d+$`).MatchString(got) || !strings.Contains(got, "5242880") {
		t.Errorf("the links lead to %s bytes", got)
	}
	b.run("copy", chromedp.Click(".commands button"))
	b.wait(`/Copied|Marked/.test(document.querySelector(".commands button").textContent)`)
	if p := b.console(); len(p) > 0 {
		t.Errorf("errors in the console: %q", p)
	}
}

// A job with groups shows these and its links, and nothing that each group has for itself.
func TestFactsOfGroups(t *testing.T) {
	st := jobs.Status{Spec: jobs.Spec{Args: []string{"true"}, Min: 3, Max: 3, Slots: 1, Topology: groups.Topology{
		Groups: []groups.Group{{Name: "sea", Min: 2, Max: 2, Slots: groups.Range{Min: 4}}, {Name: "air", Min: 1, Max: 1}},
		Links:  []groups.Link{{Name: "all", Groups: []string{"sea", "air"}, MaxRTT: codec.Duration(5 * time.Millisecond)}},
	}}, Shape: jobs.Shape{Groups: []jobs.GroupStatus{{Name: "sea", Min: 1, Max: 3, Workers: 2}, {Name: "air", Min: 1, Max: 1, Workers: 1}}}}
	got := map[string]string{}
	for _, f := range facts(&st) {
		got[f.Key] = f.Value
	}
	for key, want := range map[string]string{"Workers": "3, in groups", "Group sea": "2 of 1 to 3 workers, 4 slots each", "Group air": "1 worker, 1 slot each",
		"Link all": "sea, air: at most 5ms apart", "Slots each": "", "Strategy": ""} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}
