package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// ask sends one request to srv, signed in unless head holds a Cookie line.
func ask(t *testing.T, srv *httptest.Server, method, path string, head map[string]string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range head {
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	if _, ok := head["Cookie"]; !ok {
		req.AddCookie(signedIn(t, srv))
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func port(srv *httptest.Server) string { return srv.URL[strings.LastIndex(srv.URL, ":")+1:] }

// signedIn returns the cookie that the page gives for the token.
func signedIn(t *testing.T, srv *httptest.Server) *http.Cookie {
	t.Helper()
	res, _ := ask(t, srv, "GET", "/?token="+testToken, map[string]string{"Cookie": "none=1"})
	if len(res.Cookies()) != 2 {
		t.Fatalf("the token gave cookies %v, want two", res.Cookies())
	}
	return res.Cookies()[0]
}

func TestTokenBecomesACookie(t *testing.T) {
	srv := serve(t, scene())
	res, body := ask(t, srv, "GET", "/?token="+testToken, map[string]string{"Cookie": "none=1"})
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" {
		t.Fatalf("the token gave %s to %q, want a redirect to /", res.Status, res.Header.Get("Location"))
	}
	c := signedIn(t, srv)
	if c.Name != "zorilla-"+port(srv) || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" {
		t.Errorf("cookie %v, want one of this port, HttpOnly, SameSite=Strict", c)
	}
	if strings.Contains(c.Value, testToken) || strings.Contains(body, testToken) {
		t.Error("the token itself is in the answer")
	}
	for _, wrong := range []string{"Cookie: none=1", "Cookie: " + c.Name + "=" + testToken, "Cookie: " + c.Name + "=", "Cookie: zorilla-1=" + c.Value} {
		res, body := ask(t, srv, "GET", "/", map[string]string{"Cookie": strings.TrimPrefix(wrong, "Cookie: ")})
		if res.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "zorilla web") {
			t.Errorf("%s: %s, want 401 and how to get in", wrong, res.Status)
		}
		if strings.Contains(body, "anteater") {
			t.Errorf("%s: the answer tells about the node", wrong)
		}
	}
	for _, path := range []string{"/?token=", "/?token=wrong", "/?token=" + testToken + "x", "/events", "/jobs/" + runningJob, "/jobs/" + runningJob + "/output"} {
		if res, _ := ask(t, srv, "GET", path, map[string]string{"Cookie": "none=1"}); res.StatusCode != http.StatusUnauthorized || len(res.Cookies()) > 0 {
			t.Errorf("%s without a cookie: %s, want 401 and no cookie", path, res.Status)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	srv := serve(t, scene())
	p := port(srv)
	for _, c := range []struct {
		method, path, header, value string
		want                        int
	}{
		{"GET", "/", "", "", 200},
		{"HEAD", "/", "", "", 200},
		{"HEAD", "/events", "", "", 200},
		{"POST", "/", "", "", 405},
		{"DELETE", "/jobs/" + runningJob, "", "", 405},
		{"OPTIONS", "/", "Origin", "http://evil.example", 405},
		{"GET", "/", "Host", "localhost:" + p, 401}, // our cookie is for 127.0.0.1; a browser has one for each name
		{"GET", "/", "Host", "LOCALHOST:" + p, 401},
		{"GET", "/", "Host", "[::1]:" + p, 401},
		{"GET", "/", "Host", "localhost", 401}, // a tunnel's near end has any port
		{"GET", "/", "Host", "localhost:8080", 401},
		{"GET", "/", "Host", "127.0.0.1:1", 401},
		{"GET", "/", "Host", "[::1]:8080", 401},
		{"GET", "/", "Host", "localhost.evil.example:8080", 403},
		{"GET", "/", "Host", "evil.localhost:8080", 403},
		{"GET", "/", "Host", "127.0.0.2:8080", 403},
		{"GET", "/", "Host", "[::2]:8080", 403},
		{"GET", "/", "Host", "0.0.0.0:" + p, 403},
		{"GET", "/", "Host", "evil.example:" + p, 403},
		{"GET", "/", "Host", "127.0.0.1.evil.example:" + p, 403},
		{"GET", "/", "Host", "192.168.1.7:" + p, 403},
		{"GET", "/assets/style.css", "Host", "evil.example:" + p, 403},
		{"GET", "/?token=" + testToken, "Host", "evil.example:" + p, 403},
		{"GET", "/", "Origin", "http://evil.example", 403},
		{"GET", "/events", "Origin", "null", 403},
		{"GET", "/events", "Origin", "http://127.0.0.1:1", 403},
		{"GET", "/", "Origin", "http://127.0.0.1:" + p, 200},
		{"GET", "/", "Sec-Fetch-Site", "cross-site", 403},
		{"GET", "/", "Sec-Fetch-Site", "same-site", 403},
		{"GET", "/", "Sec-Fetch-Site", "none", 200},
		{"GET", "/", "Sec-Fetch-Site", "same-origin", 200},
		{"GET", "/nothing", "", "", 404},
		{"GET", "/jobs/none", "", "", 404},
		{"GET", "/jobs/..%2f..%2fetc", "", "", 404},
		{"GET", "/jobs/" + strings.Repeat("a", 65), "", "", 404},
		{"GET", "/assets/..%2f..%2fweb.go", "", "", 404},
		{"GET", "/jobs/" + runningJob + "/output?rank=-1", "", "", 400},
		{"GET", "/jobs/" + runningJob + "/output?rank=x", "", "", 400},
	} {
		head := map[string]string{}
		if c.header != "" {
			head[c.header] = c.value
		}
		if c.header == "Host" && c.want == 401 {
			head["Cookie"] = "none=1"
		}
		res, body := ask(t, srv, c.method, c.path, head)
		if res.StatusCode != c.want {
			t.Errorf("%s %s with %s %q: %s, want %d", c.method, c.path, c.header, c.value, res.Status, c.want)
		}
		if c.want == 403 && strings.Count(strings.TrimSpace(body), "\n") > 0 {
			t.Errorf("%s %s: a refusal must be one plain line, got %q", c.method, c.path, body)
		}
		for name := range res.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s %s: header %s opens the page to others", c.method, c.path, name)
			}
		}
	}
}

func TestEveryAnswerIsStrict(t *testing.T) {
	srv := serve(t, scene())
	for _, path := range []string{"/", "/jobs/" + runningJob, "/assets/style.css", "/assets/live.js", "/nothing"} {
		res, _ := ask(t, srv, "GET", path, nil)
		csp := res.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: policy %q lacks %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY"} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	if res, _ := ask(t, srv, "GET", "/assets/live.js", nil); res.Header.Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("a script is %q", res.Header.Get("Content-Type"))
	}
}

func TestShortTokenIsRefused(t *testing.T) {
	for _, token := range []string{"", "short"} {
		if _, err := New(Config{Service: scene(), Token: token}); err == nil {
			t.Errorf("token %q was accepted", token)
		}
	}
}

func TestHostsOfTheConfigAreOwn(t *testing.T) {
	h, err := New(Config{Service: scene(), Token: testToken, Hosts: []string{"node7.example:5446"}})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"Node7.example:5446": 401, "node7.example": 403, "node8.example:5446": 403} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Host = host
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("host %s: %d, want %d", host, w.Code, want)
		}
	}
}

// On another address than loopback the port counts as well; through a tunnel none does.
func TestOwnAddressAndPort(t *testing.T) {
	h, err := New(Config{Service: scene(), Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"10.1.2.3:5446": 401, "10.1.2.3:8080": 403, "10.1.2.3": 403, "10.1.2.4:5446": 403, "localhost:8080": 401, "[::1]:1": 401, "localhost.example:5446": 403,
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 5446})))
		r.Host = host
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("host %s: %d, want %d", host, w.Code, want)
		}
	}
}

// Browsers send the cookie of a page at an address of its own to no other port of 127.0.0.1, as
// doc.go says.
func TestCookieStaysAtTheAddressOfThePage(t *testing.T) {
	for own, others := range map[string]bool{"127.0.0.1": true, "127.54.46.1": false} {
		h, err := New(Config{Service: scene(), Token: testToken})
		if err != nil {
			t.Fatal(err)
		}
		at := &url.URL{Scheme: "http", Host: own + ":5446", Path: "/", RawQuery: "token=" + testToken}
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", at.String(), nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP(own), Port: 5446})))
		h.ServeHTTP(w, r)
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		jar.SetCookies(at, w.Result().Cookies())
		if len(jar.Cookies(at)) == 0 {
			t.Errorf("%s: who has the token is not let in", own)
		}
		if sent := len(jar.Cookies(&url.URL{Scheme: "http", Host: "127.0.0.1:8888"})) > 0; sent != others {
			t.Errorf("%s: another port of 127.0.0.1 gets the cookie: %v, want %v", own, sent, others)
		}
	}
}

func TestScriptsAndSheetHoldNothingForbidden(t *testing.T) {
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|https?://[^w]|@import`)
	files, err := content.ReadDir("content/assets")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d assets, %v", len(files), err)
	}
	for _, f := range files {
		b, err := content.ReadFile("content/assets/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if m := bad.Find(b); m != nil {
			t.Errorf("%s holds %q", f.Name(), m)
		}
	}
	inline := regexp.MustCompile(`(?i)\sstyle=|\son[a-z]+=|<style|<script(\s[^>]*)?>[^<]`)
	for _, path := range []string{"/", "/jobs/" + waitingJob, "/nothing"} {
		if _, body := ask(t, serve(t, scene()), "GET", path, nil); inline.MatchString(body) {
			t.Errorf("%s has inline style or script: %q", path, inline.FindString(body))
		}
	}
}

func TestHostileNamesStayText(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>'`
	nodes := network(4)
	for i := range nodes {
		nodes[i].Name, nodes[i].Site, nodes[i].Platform, nodes[i].Cluster = evil, evil+"\u202e\x1b[2J", evil, evil+"\u202e"
		nodes[i].Links = []api.Link{{ID: evil, Kind: evil}, {ID: nodes[0].ID, Kind: evil}}
	}
	nodes[0].Release, nodes[0].Traffic = evil, api.Traffic{{Group: evil, Name: evil, Value: 1, Help: evil}, {Group: evil, Name: evil, Value: 1, Help: evil, Bad: true}}
	f := newFake(nodes)
	st := sample("a2b3c@zaaaa", jobs.Running, nodes, 3, time.Minute, evil)
	st.Spec.Name, st.Reason, st.Warnings, st.Spec.Strategy = evil, evil, []string{evil}, evil
	st.Spec.Env, st.Spec.Outputs, st.Spec.Where, st.Spec.Mounts = map[string]string{evil: evil}, []string{evil}, evil, []string{evil + "\u202e"}
	st.Spec.After, st.Spec.Net, st.Spec.SignalOnChange = []jobs.Dependency{{Kind: evil, Job: evil}}, evil, evil
	st.Outputs = []jobs.RankOutput{{Rank: -1 << 40, Files: 1 << 40, Bytes: -1, Manifest: transfer.HashOf([]byte("nothing"))}}
	st.Spec.Inputs = transfer.HashOf([]byte("nothing"))
	st.Worst = &jobs.WorstPair{}
	st.Workers[0].Attempt, st.Workers[0].Retried, st.Workers[0].Node = 7, evil+"\u202e", vicinity.ID(evil)
	st.Workers[1].State = jobs.WorkerState(evil)
	st.Workers[2].Exit = &work.Exit{Cause: work.Cause(evil), Detail: evil}
	st.State = jobs.State(evil)
	f.put(st)
	f.explain(jobs.Explanation{ID: st.ID, Summary: evil, Declined: map[string]int{evil: 1}, Nodes: []jobs.NodeAnswer{{Name: evil, Reason: evil, Node: "z"}}})
	srv := serve(t, f)
	for _, path := range []string{"/", "/jobs/a2b3c"} {
		res, body := ask(t, srv, "GET", path, nil)
		if res.StatusCode != 200 {
			t.Fatalf("%s: %s", path, res.Status)
		}
		for _, bad := range []string{"<script>alert", "<img", "\u202e", "\x1b", `onerror=alert(2)>`} {
			if strings.Contains(body, bad) {
				t.Errorf("%s: the page holds %q", path, bad)
			}
		}
		if !strings.Contains(body, "&lt;script&gt;") {
			t.Errorf("%s: the name is not shown at all", path)
		}
	}
}

func TestAPageIsBounded(t *testing.T) {
	nodes := network(1000)
	f := newFake(nodes)
	for i := range 300 {
		f.put(sample(fmt.Sprintf("j%04d@zaaaa", i), jobs.Running, nodes, 1, time.Minute, "x"))
	}
	big := sample("bbbbb@zaaaa", jobs.Running, nodes, 5000, time.Minute, "x")
	for i := range 200 {
		big.Rounds = append(big.Rounds, jobs.Round{Number: i, Radius: i, Reached: 1e6, Offers: 1e6, Declines: 1e6})
		big.Warnings = append(big.Warnings, strings.Repeat("w", 10000))
	}
	f.put(big)
	srv := serve(t, f)
	_, body := ask(t, srv, "GET", "/", nil)
	if rows := strings.Count(body, "<tr "); rows > maxNodeRows+5 || !strings.Contains(body, "800 more nodes are farther away") {
		t.Errorf("%d rows of nodes, want %d and a note", rows, maxNodeRows)
	}
	if rows := strings.Count(body, `<li data-key="j`); rows != activeRows-1 || !strings.Contains(body, "1 to 50 of 301") {
		t.Errorf("%d rows of jobs, or nothing leads to the others", rows)
	}
	_, body = ask(t, srv, "GET", "/jobs/bbbbb", nil)
	if !strings.Contains(body, "4\u202f500 more: zorilla status lists all.") || len(body) > 1<<20 {
		t.Errorf("page of a big job has %d bytes; want at most 1 MB and a note", len(body))
	}
}

func TestServiceThatCannotAnswer(t *testing.T) {
	f := scene()
	srv := serve(t, f)
	if res, _ := ask(t, srv, "GET", "/jobs/nosuch", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("unknown job: %s", res.Status)
	}
	f.change(func() { f.broken = fmt.Errorf("store: %w", api.ErrUnavailable) })
	for _, path := range []string{"/", "/jobs/" + runningJob} {
		if res, body := ask(t, srv, "GET", path, nil); res.StatusCode != http.StatusServiceUnavailable || strings.Contains(body, "store:") {
			t.Errorf("%s: %s, want 503 without details", path, res.Status)
		}
	}
}
