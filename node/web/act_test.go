package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"zorilla/jobs"
	"zorilla/node/api"
)

// enter signs in with a token and returns the cookie, and the key of the session.
func enter(t *testing.T, srv *httptest.Server, token string) (cookie *http.Cookie, key string) {
	t.Helper()
	res, _ := ask(t, srv, "GET", "/?token="+token, map[string]string{"Cookie": "none=1"})
	for _, c := range res.Cookies() {
		if c.SameSite != http.SameSiteStrictMode || c.Path != "/" {
			t.Errorf("cookie %v is for others, too", c)
		}
		if strings.HasSuffix(c.Name, "-key") {
			if key = c.Value; c.MaxAge > 60 {
				t.Errorf("the key is in a cookie for %d s", c.MaxAge)
			}
		} else {
			cookie = c
		}
	}
	if cookie == nil {
		t.Fatalf("the token gave %s", res.Status)
	}
	return cookie, key
}

func (f *fake) Submit(_ context.Context, spec jobs.Spec) (jobs.ID, error) {
	if f.broken != nil {
		return "", f.broken
	}
	f.change(func() { f.acts = append(f.acts, fmt.Sprintf("submit %q %v", spec.Args, spec.Array)) })
	f.put(jobs.Status{ID: "again@zaaaa", Origin: f.self.ID, Spec: spec, State: jobs.Pending, ExitCode: -1, Submitted: time.Now()})
	return "again@zaaaa", nil
}

func (f *fake) Cancel(_ context.Context, job string, _ bool) error {
	f.change(func() {
		f.acts = append(f.acts, "cancel "+job)
		f.jobs[jobs.ID(job)].status.State = jobs.Cancelled
		f.jobs[jobs.ID(job)].version++
	})
	return f.broken
}

func (f *fake) Drain(_ context.Context, d api.Drain) (jobs.Drained, error) {
	f.change(func() {
		f.acts = append(f.acts, fmt.Sprintf("drain %+v", d))
		f.self.State = map[bool]string{false: "draining"}[d.Undo]
	})
	return jobs.Drained{Draining: !d.Undo, Workers: 2}, f.broken
}

func (f *fake) SetLimits(_ context.Context, changes []string) (jobs.Limits, error) {
	f.change(func() {
		f.acts = append(f.acts, strings.Join(changes, " "))
		f.self.State = map[bool]string{true: "paused"}[changes[0] == "paused=yes"]
	})
	return jobs.Limits{}, f.broken
}

// did lists what was changed.
func (f *fake) did() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.acts)
}

var everyAct = []string{"/jobs/" + runningJob + "/cancel", "/jobs/" + failedJob + "/rerun", "/jobs/" + failedJob + "/rerun-failed", "/node/pause", "/node/resume", "/node/drain", "/node/undrain"}

const submitAct = "/jobs" // which has a form

func TestOwnerActs(t *testing.T) {
	f := scene()
	f.jobs[failedJob].status.Array = &jobs.ArrayStatus{Tasks: 3, Failed: 2}
	f.jobs[failedJob].status.Spec.Array = &jobs.Array{}
	f.jobs[failedJob].codes = []int8{1, 0, 3}
	srv := serve(t, f)
	cookie, key := enter(t, srv, testToken)
	for i, path := range everyAct {
		res, body := ask(t, srv, "POST", path, map[string]string{"Cookie": cookie.String(), keyHeader: key, "Origin": srv.URL, "Sec-Fetch-Site": "same-origin"})
		var said outcome
		if err := json.Unmarshal([]byte(body), &said); err != nil || res.StatusCode != 200 || said.Text == "" || (said.Href != "") != strings.Contains(path, "rerun") {
			t.Errorf("%s: %s, %s", path, res.Status, body)
		}
		if len(f.did()) != i+1 {
			t.Fatalf("%s: done was %q", path, f.did())
		}
	}
	want := []string{"cancel " + runningJob, `submit ["python3" "train.py" "--epochs" "5"] &{[] false}`, `submit ["python3" "train.py" "--epochs" "5"] &{[{1 3 2}] false}`,
		"paused=yes", "paused=no", "drain {Now:false Discard:false Exit:false Undo:false}", "drain {Now:false Discard:false Exit:false Undo:true}"}
	if !slices.Equal(f.did(), want) {
		t.Errorf("done was\n%q, want\n%q", f.did(), want)
	}
	for path, code := range map[string]int{"/jobs/none/cancel": 404, "/jobs/" + runningJob + "/rerun-failed": 409, "/jobs/..%2f/cancel": 404} {
		res, body := ask(t, srv, "POST", path, map[string]string{"Cookie": cookie.String(), keyHeader: key, "Origin": srv.URL})
		if res.StatusCode != code || !strings.HasPrefix(body, `{"text":"`) {
			t.Errorf("%s: %s, %s, want %d", path, res.Status, body, code)
		}
	}
	f.change(func() { f.broken = errors.New("<b>\x1b\u202e" + strings.Repeat("x", 5000)) })
	res, body := ask(t, srv, "POST", "/node/pause", map[string]string{"Cookie": cookie.String(), keyHeader: key, "Origin": srv.URL})
	if res.StatusCode != 409 || len(body) > 2000 || strings.ContainsAny(body, "\x1b\u202e") || res.Header.Get("Content-Type") != "application/json" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("an error comes as %s, %v, %.200s", res.Status, res.Header, body)
	}
}

// The page submits a job of another node again without what it would be granted as this one's,
// says so, and offers no more.
func TestJobsOfOthersAreRunAgainWithoutTheirWishes(t *testing.T) {
	f := scene()
	st := f.jobs[failedJob].status
	st.ID = "t9pbc@zelsewhere"
	st.Spec.Mounts, st.Spec.OnEnd, st.Spec.Net, st.Spec.Outputs = []string{"/home/victim:ro"}, "id", jobs.NetHost, []string{"res", ".config/*", "a/.x"}
	f.put(st)
	theirs := st.ID
	st.ID = st.ID.At(f.self.ID)
	f.put(st)
	srv := serve(t, f)
	cookie, key := enter(t, srv, testToken)
	for _, id := range []jobs.ID{theirs, st.ID} {
		own := id == st.ID
		_, body := ask(t, srv, "POST", "/jobs/"+string(id)+"/rerun", map[string]string{"Cookie": cookie.String(), keyHeader: key, "Origin": srv.URL, "Sec-Fetch-Site": "same-origin"})
		if strings.Contains(body, "left out: --mount /home/victim:ro, -o .config/*, -o a/.x") == own {
			t.Errorf("%s: %s", id, body)
		}
		spec := f.jobs["again@zaaaa"].status.Spec
		if (len(spec.Mounts) > 0) != own || (spec.OnEnd != "") != own || (spec.Net != "") != own || len(spec.Outputs) != map[bool]int{true: 3, false: 1}[own] {
			t.Errorf("%s: %+v", id, spec)
		}
	}
}

// Nobody but the owner's own page changes anything: no reader, no other page, no form, no
// other port that was sent the cookie, no key of yesterday.
func TestNobodyElseActs(t *testing.T) {
	f := scene()
	srv := serve(t, f)
	owner, key := enter(t, srv, testToken)
	reader, none := enter(t, srv, ReadOnly(testToken))
	if none != "" {
		t.Error("a reader has a key")
	}
	old := newKey(testToken, time.Now().Add(-sessionLength-time.Minute))
	forged := newKey("another token, of somebody else", time.Now())
	readers := newKey(ReadOnly(testToken), time.Now())
	longer := "A"
	if key[0] == 'A' {
		longer = "B"
	}
	for _, path := range append([]string{submitAct}, everyAct...) {
		for what, head := range map[string]map[string]string{
			"without a cookie":        {"Cookie": "none=1", keyHeader: key, "Origin": srv.URL},
			"a reader":                {"Cookie": reader.String(), keyHeader: key, "Origin": srv.URL},
			"a reader's key":          {"Cookie": owner.String(), keyHeader: readers, "Origin": srv.URL},
			"without a key":           {"Cookie": owner.String(), "Origin": srv.URL},
			"the key as a cookie":     {"Cookie": owner.String() + "; " + owner.Name + "-key=" + key, "Origin": srv.URL},
			"an old key":              {"Cookie": owner.String(), keyHeader: old, "Origin": srv.URL},
			"a forged key":            {"Cookie": owner.String(), keyHeader: forged, "Origin": srv.URL},
			"a longer life":           {"Cookie": owner.String(), keyHeader: longer + key[1:], "Origin": srv.URL},
			"a short key":             {"Cookie": owner.String(), keyHeader: key[:20], "Origin": srv.URL},
			"without an origin":       {"Cookie": owner.String(), keyHeader: key},
			"another origin":          {"Cookie": owner.String(), keyHeader: key, "Origin": "http://evil.example"},
			"another port":            {"Cookie": owner.String(), keyHeader: key, "Origin": "http://127.0.0.1:1"},
			"no origin to speak of":   {"Cookie": owner.String(), keyHeader: key, "Origin": "null"},
			"another site's page":     {"Cookie": owner.String(), keyHeader: key, "Origin": srv.URL, "Sec-Fetch-Site": "cross-site"},
			"another port's page":     {"Cookie": owner.String(), keyHeader: key, "Origin": srv.URL, "Sec-Fetch-Site": "same-site"},
			"another host, rebinding": {"Cookie": owner.String(), keyHeader: key, "Origin": "http://evil.example:" + port(srv), "Host": "evil.example:" + port(srv)},
		} {
			if res, _ := ask(t, srv, "POST", path, head); res.StatusCode != http.StatusForbidden {
				t.Errorf("%s, %s: %s", path, what, res.Status)
			}
		}
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
			if res, _ := ask(t, srv, method, path, map[string]string{"Cookie": owner.String(), keyHeader: key, "Origin": srv.URL}); res.StatusCode < 400 {
				t.Errorf("%s %s: %s", method, path, res.Status)
			}
		}
	}
	if len(f.did()) > 0 {
		t.Errorf("done was %q", f.did())
	}
	for _, path := range []string{"/", "/jobs/" + runningJob, "/jobs/" + failedJob, "/nodes/" + string(nodeID(1))} {
		res, body := ask(t, srv, "GET", path, map[string]string{"Cookie": reader.String()})
		if res.StatusCode != 200 || strings.Contains(body, "data-act=") || strings.Contains(body, "data-owner") || strings.Contains(body, key) {
			t.Errorf("%s for a reader: %s, with what acts", path, res.Status)
		}
		if _, body := ask(t, srv, "GET", path, map[string]string{"Cookie": owner.String()}); !strings.Contains(body, "data-owner") || strings.Contains(body, key) {
			t.Errorf("%s for the owner tells the key, or that nothing can be done", path)
		}
	}
	// Who may only look cannot find out more.
	if strings.Contains(ReadOnly(testToken), testToken[:8]) || ReadOnly(testToken) == ReadOnly(testToken+"x") || len(ReadOnly(testToken)) < 20 {
		t.Errorf("the reader's token is %s", ReadOnly(testToken))
	}
}

// A page without an owner changes nothing, whoever asks.
func TestPageThatOnlyShows(t *testing.T) {
	f := scene()
	srv := serveService(t, struct{ Service }{f})
	cookie, key := enter(t, srv, testToken)
	if key != "" {
		t.Error("there is a key")
	}
	for _, path := range append([]string{submitAct}, everyAct...) {
		if res, _ := ask(t, srv, "POST", path, map[string]string{"Cookie": cookie.String(), keyHeader: newKey(testToken, time.Now()), "Origin": srv.URL}); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	if len(f.did()) > 0 {
		t.Errorf("done was %q", f.did())
	}
}

func TestActionsInChromium(t *testing.T) {
	f := scene()
	srv := serve(t, f)
	b := chromium(t)
	b.look(390, 844, true, "dark")
	b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
	b.wait(`document.querySelector("#live").textContent === "live"`)
	if got := b.ask(`document.cookie + location.hash + location.search`); got != "" {
		t.Errorf("scripts still see %q", got)
	}
	b.run("pause", chromedp.Click(`[data-act="/node/pause"]`))
	b.wait(`document.querySelector("#toast").innerText.includes("takes no new workers")`)
	b.wait(`document.querySelector(".hero .state").textContent === "paused" && !document.querySelector('[data-act="/node/pause"]').checkVisibility()`)
	b.run("resume", chromedp.Click(`[data-act="/node/resume"]`))
	b.wait(`document.querySelector('[data-act="/node/pause"]').checkVisibility()`)

	b.run("open", chromedp.Navigate(srv.URL+"/jobs/"+runningJob))
	b.wait(`document.querySelector('[data-act="cancel"]').checkVisibility() && !document.querySelector('[data-act="rerun"]').checkVisibility()`)
	b.run("cancel", chromedp.Click(`[data-act="cancel"]`))
	b.wait(`document.querySelector('[data-act="cancel"]').textContent === "End this job?"`)
	if len(f.did()) != 2 {
		t.Errorf("done at the first click: %q", f.did())
	}
	b.run("really", chromedp.Click(`[data-act="cancel"]`))
	b.wait(`document.querySelector(".verdict .state").textContent === "CANCELLED"`)
	b.run("again", chromedp.Click(`[data-act="rerun"]`))
	b.wait(`document.querySelector("#toast a")?.getAttribute("href") === "/jobs/again@zaaaa"`)
	b.wait(`document.documentElement.scrollWidth === 390`)
	if len(f.did()) != 4 {
		t.Errorf("done was %q", f.did())
	}
	if p := b.console(); len(p) > 0 {
		t.Errorf("errors in the console: %q", p)
	}
	// A reader in the same browser sees no button, and the old key is of no use to it.
	b.run("sign in as a reader", chromedp.Navigate(srv.URL+"/?token="+ReadOnly(testToken)))
	b.wait(`document.querySelector("#live").textContent === "live" && !document.querySelector("[data-act]")`)
	if got := b.do(`return (await fetch("/node/pause", { method: "POST", headers: { "Zorilla-Key": localStorage.getItem("key") } })).status`); got != "403" {
		t.Errorf("a reader's request ends with %s", got)
	}
}
