package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"zorilla/internal/needs"
	"zorilla/jobs"
)

// tab is one tab of a real Chromium.
type tab struct {
	t   *testing.T
	ctx context.Context
}

func openTab(t *testing.T) *tab {
	t.Helper()
	path := needs.OneOf(t, "chromium", "chromium-browser", "google-chrome")
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute) // only a browser that hangs takes as long
	t.Cleanup(cancel)
	alloc, cancelAlloc := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancelAlloc)
	b := &tab{t: t}
	var cancelTab context.CancelFunc
	b.ctx, cancelTab = chromedp.NewContext(alloc)
	t.Cleanup(cancelTab)
	if err := chromedp.Listen(b.ctx, func(e any) {
		if e, ok := e.(*runtime.EventExceptionThrown); ok {
			t.Errorf("the page's script failed: %v", &chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails})
		}
	}); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return b
}

func (b *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// ask evaluates a JavaScript expression.
func (b *tab) ask(expression string) string {
	b.t.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("ask for %s: %v", expression, err)
	}
	return s
}

// see waits until the JavaScript expression is true.
func (b *tab) see(expression string) {
	b.t.Helper()
	poll := time.NewTicker(pollEvery) // the page tells nobody that it has changed
	defer poll.Stop()
	for end := time.Now().Add(realDeadline); ; <-poll.C {
		good, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("(() => { try { return Boolean("+expression+"); } catch { return false; } })()"))
		if good {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("waited for %s: %v; the page says:\n%s", expression, err, b.ask("document.body.innerText"))
		}
	}
}

// picture leaves a picture for people to look at.
func (b *tab) picture(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatalf("make a picture: %v", err)
	}
}

// A job comes, its output grows and it ends, on the page of a real node and
// without a reload.
func TestPageOfARealNode(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	net := realNet(t, 3, "--slots", "2", "--expose", g.dir)
	node := net.nodes[1]
	address := node.says(t, "web")
	b := openTab(t)
	b.do("open the page", chromedp.Navigate(address))
	b.see(`document.querySelector("#live").dataset.tone === "on"`)
	if got := b.ask("location.pathname + location.search"); got != "/" {
		t.Errorf("the address bar shows %q, want no token", got)
	}
	b.see(`["node1", "node2", "node3"].every((n) => document.body.innerText.includes(n))`)
	b.do("mark this document", chromedp.Evaluate[chromedp.Void]("void (window.mark = 1)"))

	job := node.says(t, "submit", "-n", "6", "-J", "counting", "--", "sh", "-c", "echo first line of $ZORILLA_RANK; "+g.wait()+"; echo second line")
	b.see(`document.querySelector(".joblist")?.innerText.includes("counting")`)
	b.see(`document.querySelector(".joblist .state")?.textContent === "RUNNING"`)
	b.picture("real-overview")
	if b.ask("window.mark") != "1" {
		t.Error("the page was loaded again")
	}

	b.do("open the job", chromedp.Click(".joblist a"))
	b.see(`document.querySelector(".verdict .state")?.textContent === "RUNNING"`)
	b.do("mark this document", chromedp.Evaluate[chromedp.Void]("void (window.mark = 2)"))
	b.see(`document.querySelectorAll(".workers tbody tr").length === 6`)
	b.see(`document.querySelectorAll("#log .row").length === 6`)
	b.picture("real-job-running")
	g.open(t)
	b.see(`document.querySelectorAll("#log .row").length === 12`)
	b.see(`document.querySelector(".verdict .state").textContent === "COMPLETED"`)
	b.see(`document.querySelector("#live").textContent === "ended"`)
	if b.ask("window.mark") != "2" {
		t.Error("the job's page was loaded again")
	}
	b.picture("real-job-ended")
	node.job(t, job, "COMPLETED", inState(jobs.Completed))
}

func TestPageRefusesStrangers(t *testing.T) {
	t.Parallel()
	net := realNet(t, 1, "--slots", "1")
	address, err := url.Parse(net.nodes[1].says(t, "web"))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	plain := *address
	plain.RawQuery = ""
	wrong := *address
	wrong.RawQuery = "token=wrong"
	events := plain
	events.Path = "/events"
	for name, c := range map[string]struct {
		url    url.URL
		method string
		header http.Header
		host   string
		want   int
	}{
		"its owner":        {url: *address, want: http.StatusSeeOther},
		"without a token":  {url: plain, want: http.StatusUnauthorized},
		"a wrong token":    {url: wrong, want: http.StatusUnauthorized},
		"events":           {url: events, want: http.StatusUnauthorized},
		"a foreign host":   {url: *address, host: "evil.example", want: http.StatusForbidden},
		"through a tunnel": {url: *address, host: "localhost:8080", want: http.StatusSeeOther},
		"a name's port":    {url: *address, host: "localhost.evil.example:8080", want: http.StatusForbidden},
		"a foreign origin": {url: *address, header: http.Header{"Origin": {"http://evil.example"}}, want: http.StatusForbidden},
		"another site":     {url: *address, header: http.Header{"Sec-Fetch-Site": {"cross-site"}}, want: http.StatusForbidden},
		"a POST":           {url: *address, method: http.MethodPost, want: http.StatusMethodNotAllowed},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, c.url.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != nil {
			req.Header = c.header
		}
		req.Host = c.host
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.want {
			t.Errorf("%s: %d, %v, want %d", name, resp.StatusCode, err, c.want)
		}
		if c.want != http.StatusSeeOther && strings.Contains(string(body), "node1") {
			t.Errorf("%s learns about the node", name)
		}
	}
}

// --node takes the address that zorilla web prints; the one that only shows opens nothing.
func TestCommandsByTheAddressOfThePage(t *testing.T) {
	t.Parallel()
	node := realNet(t, 1, "--slots", "1").nodes[1]
	address := node.says(t, "web")
	run := func(address string, args ...string) (string, error) {
		cmd := node.command(t, append([]string{args[0], "--node", address}, args[1:]...)...)
		cmd.Stdin = strings.NewReader("word\n")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	if out, err := run(address, "run", "-q", "--", "sh", "-c", "read x; echo got $x"); err != nil || out != "got word\n" {
		t.Errorf("run: %v, %s", err, out)
	}
	if out, err := run(address, "ps"); err != nil || !strings.Contains(out, "COMPLETED") {
		t.Errorf("ps: %v, %s", err, out)
	}
	looking := node.says(t, "web", "--read-only")
	if looking == address {
		t.Fatal("both addresses are one")
	}
	plain, _, _ := strings.Cut(address, "?")
	for what, url := range map[string]string{"only to look": looking, "without a token": plain, "a wrong token": plain + "?token=wrong"} {
		for _, command := range []string{"ps", "invite"} {
			if out, err := run(url, command); err == nil || !strings.Contains(out, "zorilla web") || strings.Contains(out, "zor1.") || strings.Contains(out, "token=") {
				t.Errorf("%s, %s: %v, %s", command, what, err, out)
			}
		}
	}
	for what, head := range map[string][2]string{"a page": {"Origin", plain[:len(plain)-1]}, "a link": {"Sec-Fetch-Site", "same-origin"}, "a name that was led here": {"Host", "evil.example"}} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", plain+"v1/node", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, token, _ := strings.Cut(address, "token=")
		req.Header.Set("Authorization", "Bearer "+token)
		if req.Header.Set(head[0], head[1]); head[0] == "Host" {
			req.Host = head[1]
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s is served: %s", what, resp.Status)
		}
	}
}

// Who has not shown the cookie keeps no owner out of a real node's page: of very
// many connections the oldest go, but never those of the owner.
func TestGuestsOfARealPage(t *testing.T) {
	t.Parallel()
	node := realNet(t, 1, "--slots", "1").nodes[1]
	address, err := url.Parse(node.says(t, "web"))
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	owner := &http.Client{Jar: jar, Transport: &http.Transport{}}
	defer owner.CloseIdleConnections()
	look := func(path string) *http.Response {
		resp, err := owner.Get(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	if _, err := io.Copy(io.Discard, look(address.String()).Body); err != nil {
		t.Fatal(err)
	}
	events := bufio.NewReader(look("http://" + address.Host + "/events").Body)
	var guests []net.Conn
	for range 2 * 64 {
		c := dial(t, "tcp", address.Host)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nX: ")
		guests = append(guests, c)
	}
	for _, c := range guests[:64] { // before the time is over in which a request must come
		c.SetReadDeadline(time.Now().Add(8 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil && err.(net.Error).Timeout() {
			t.Fatal("the oldest guest is still there")
		}
	}
	node.says(t, "submit", "-J", "later", "true")
	for line := ""; !strings.Contains(line, "later"); {
		if line, err = events.ReadString('\n'); err != nil {
			t.Fatalf("a page that was open: %v", err)
		}
	}
}
