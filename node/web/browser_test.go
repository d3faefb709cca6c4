package web

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	needed "zorilla/internal/needs"
	"zorilla/jobs"
	"zorilla/jobs/work"
)

// browser is one tab of a real Chromium. Its methods fail the test.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string // what the console showed as an error
}

// chromium starts a browser for one test: a page that no browser has shown is not
// tested.
func chromium(t *testing.T) *browser {
	t.Helper()
	path := needed.OneOf(t, "chromium", "chromium-browser", "google-chrome")
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute) // only a browser that hangs takes as long
	t.Cleanup(cancel)
	alloc, cancelAlloc := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancelAlloc)
	tab, cancelTab := chromedp.NewContext(alloc)
	t.Cleanup(cancelTab)
	b := &browser{t: t, ctx: tab}
	if err := chromedp.Listen(tab, b.listen); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return b
}

func (b *browser) listen(e any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Source == cdplog.EntrySourceSecurity {
			b.problems = append(b.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" {
			b.problems = append(b.problems, fmt.Sprintf("console.error %s", e.Args[0].Value))
		}
	}
}

func (b *browser) run(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// wait waits until the JavaScript expression is true, also over a navigation.
// (chromedp.Poll compiles strings, which the page's policy forbids.)
func (b *browser) wait(expression string) {
	b.t.Helper()
	script := `new Promise((done) => {
		const end = Date.now() + 120000;
		const look = () => {
			let good = false;
			try { good = Boolean(` + expression + `); } catch {}
			if (good || Date.now() > end) done(good); else setTimeout(look, 20);
		};
		look();
	})`
	for deadline := time.Now().Add(3 * time.Minute); ; {
		good, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise))
		if good {
			return
		}
		if err == nil || time.Now().After(deadline) {
			b.t.Fatalf("waited for %s: %v; the page says:\n%s\nconsole: %q", expression, err, b.ask("document.body.innerText"), b.console())
		}
	}
}

func (b *browser) ask(expression string) string {
	b.t.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("ask for %s: %v", expression, err)
	}
	return s
}

// do runs a script that may wait, and returns its result.
func (b *browser) do(script string) string {
	b.t.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("(async () => {"+script+"})().then(String)", chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("run %s: %v", script, err)
	}
	return s
}

func (b *browser) console() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.problems[:min(len(b.problems), 5)]
}

// look sets the size of the window and the colour scheme.
func (b *browser) look(width, height int64, mobile bool, scheme string) {
	b.t.Helper()
	b.run("set the window", chromedp.EmulateViewport(width, height, func(p *emulation.SetDeviceMetricsOverrideParams, _ *emulation.SetTouchEmulationEnabledParams) {
		p.Mobile, p.DeviceScaleFactor = mobile, 1
	}))
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		b.t.Fatalf("set the colours: %v", err)
	}
}

func (b *browser) picture(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatalf("make a picture: %v", err)
	}
}

func serve(t *testing.T, f *fake) *httptest.Server { return serveService(t, f) }

func serveService(t *testing.T, s Service) *httptest.Server {
	srv := httptest.NewServer(newPage(t, s))
	t.Cleanup(func() {
		srv.CloseClientConnections() // else Close waits for the event streams
		srv.Close()
	})
	return srv
}

func TestJobComesRunsAndEndsInChromium(t *testing.T) {
	f := newFake(network(5))
	srv := serve(t, f)
	b := chromium(t)
	b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
	if got := b.ask(`location.pathname + location.search`); got != "/" {
		t.Fatalf("after signing in the address is %s, want / without the token", got)
	}
	b.wait(`document.querySelector("#live").dataset.tone === "on"`)
	b.wait(`document.querySelector(".jobs .empty").checkVisibility()`)

	st := sample("a2b3c@zaaaa", jobs.Pending, f.nodes, 3, time.Second, "./prog", "<b>bold</b>")
	f.put(st)
	b.wait(`document.querySelector(".joblist .state")?.textContent === "PENDING"`)
	b.wait(`!document.querySelector(".jobs .empty").checkVisibility()`)
	b.wait(`document.querySelector(".joblist b").textContent.includes("<b>bold</b>")`)

	b.run("open the job", chromedp.Click(".joblist a"))
	b.wait(`document.querySelector(".verdict .state")?.textContent === "PENDING"`)
	running := sample("a2b3c@zaaaa", jobs.Running, f.nodes, 3, time.Second, "./prog", "<b>bold</b>")
	f.put(running)
	b.wait(`document.querySelector(".verdict .state").textContent === "RUNNING"`)
	b.wait(`document.querySelectorAll(".workers tbody tr").length === 3`)

	f.print(st.ID, 0, work.Stdout, "one\ntwo <img src=x onerror=alert(1)>\n")
	b.wait(`document.querySelectorAll("#log .row").length === 2`)
	f.print(st.ID, 1, work.Stderr, "\x1b[31mthree\x1b[0m and ")
	f.print(st.ID, 1, work.Stderr, "a half\nfour")
	b.wait(`document.querySelectorAll("#log .row.err").length === 2`)
	if got := b.ask(`[...document.querySelectorAll("#log .row")].map((r) => r.children[0].textContent + ":" + r.children[1].textContent).join("|")`); got != "0:one|0:two <img src=x onerror=alert(1)>|1:three and a half|1:four" {
		t.Errorf("log shows %q", got)
	}
	if got := b.ask(`document.querySelectorAll("main img, main b > b").length`); got != "0" {
		t.Errorf("%s elements were made from output or names", got)
	}

	b.run("choose rank 1", chromedp.Click(`.workers a[data-rank="1"]`))
	b.wait(`document.querySelectorAll("#log .row").length === 2 && document.querySelector("#log .body").textContent === "three and a half"`)
	b.do(`const rank = document.querySelector("#rank"); rank.value = ""; rank.dispatchEvent(new Event("change"));`)
	b.wait(`document.querySelectorAll("#log .row").length === 4`)

	ended := sample("a2b3c@zaaaa", jobs.Completed, f.nodes, 3, time.Second, "./prog", "<b>bold</b>")
	f.put(ended)
	b.wait(`document.querySelector(".verdict .state").textContent === "COMPLETED"`)
	b.wait(`document.querySelector("#logstate").textContent === "End of the output."`)
	b.wait(`document.querySelector("#live").textContent === "ended"`)
	if p := b.console(); len(p) > 0 {
		t.Errorf("errors in the console: %q", p)
	}
}

// dumpMain writes the page's main part as text, without what goes on by itself
// between two looks (clocks, output) and without marks that the browser makes.
const dumpMain = `
	const main = document.querySelector("main").cloneNode(true);
	main.querySelectorAll("time, .output, .line rect").forEach((e) => e.remove());
	main.querySelectorAll(".new").forEach((e) => e.classList.remove("new"));
	main.querySelectorAll(".timeline svg a").forEach((e) => { // which time moves
		e.removeAttribute("aria-label");
		e.querySelector("title").textContent = "";
		for (const name of ["x", "width"]) e.querySelector("rect").removeAttribute(name);
	});
	const attributes = (e) => [...e.attributes].filter((a) => a.name !== "class" || a.value).map((a) => a.name + "=" + a.value).sort().join(" ");
	const dump = (e) => e.nodeType === Node.TEXT_NODE ? e.data.trim() : e.nodeType !== Node.ELEMENT_NODE ? "" :
		"\n<" + e.localName + " " + attributes(e) + ">" + [...e.childNodes].map(dump).join("");
	return dump(main);`

// A page that was kept alive must be what the node would write anew: the same
// view goes through the templates and through bind.js.
func TestLivePageIsTheWrittenPage(t *testing.T) {
	srv := serve(t, scene())
	b := chromium(t)
	b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
	scripts := func(off bool) {
		if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off}); err != nil {
			t.Fatal(err)
		}
	}
	written := func(path string) string {
		scripts(true)
		b.run("open without scripts", chromedp.Navigate(srv.URL+path))
		defer scripts(false)
		return b.do(dumpMain)
	}
	for _, path := range []string{"/", "/?q=e&state=completed", "/nodes/" + string(nodeID(0)), "/timeline", "/nodes/" + string(nodeID(7)), "/jobs/" + runningJob, "/jobs/" + waitingJob, "/jobs/" + failedJob} {
		before := written(path)
		b.run("open", chromedp.Navigate(srv.URL+path))
		b.wait(`/live|ended/.test(document.querySelector("#live").textContent)`)
		// Emptied first, every row must be made again from its prototype.
		made := b.do(`
			const { bind } = await import("/assets/bind.js");
			const view = await new Promise((done) => {
				const s = new EventSource(location.pathname.replace(/\/$/, "") + "/events" + location.search);
				s.addEventListener("view", (e) => { s.close(); done(JSON.parse(e.data)); });
			});
			document.querySelectorAll("main [data-each]").forEach((e) => e.replaceChildren());
			bind(document.querySelector("main"), view);` + dumpMain)
		if made == before {
			continue
		}
		// Rates are others after ten seconds, and a busy machine takes as long.
		if after := written(path); made != after {
			m, w := strings.Split(made, "\n"), strings.Split(after, "\n")
			for i := range min(len(m), len(w)) {
				if m[i] != w[i] {
					t.Errorf("%s: the live page has\n%s\nwhere the written one has\n%s", path, m[i], w[i])
					break
				}
			}
			t.Errorf("%s: the live page has %d elements, the written one %d", path, len(m), len(w))
		}
	}
	if p := b.console(); len(p) > 0 {
		t.Errorf("errors in the console: %q", p)
	}
}

// The browser's clocks must write what the node writes.
func TestClocksAgree(t *testing.T) {
	b := chromium(t)
	b.run("sign in", chromedp.Navigate(serve(t, scene()).URL+"/?token="+testToken))
	var want []string
	var ms []string
	for _, d := range []time.Duration{0, 340, 9940, 9960, 10_000, 59_999, 60_000, 3_599_999, 3_600_000, 86_399_999, 86_400_000, 200_000_000} {
		want = append(want, span(d*time.Millisecond)+"|"+ago(d*time.Millisecond))
		ms = append(ms, fmt.Sprint(int64(d)))
	}
	got := b.do(`const c = await import("/assets/clock.js"); return [` + strings.Join(ms, ",") + `].map((n) => c.span(n) + "|" + c.ago(n)).join(";")`)
	if got != strings.Join(want, ";") {
		t.Errorf("the browser writes\n%s\nthe node\n%s", got, strings.Join(want, ";"))
	}
}

func TestPhoneNeedsNoSidewaysScrolling(t *testing.T) {
	f := scene()
	wide := sample("wwwww@zaaaa", jobs.Failed, f.nodes, 3, time.Minute, "./"+strings.Repeat("verylongname", 30))
	wide.Spec.Name = strings.Repeat("W", 64)
	wide.Reason = strings.Repeat("because", 60)
	f.put(wide)
	f.print(wide.ID, 0, work.Stdout, strings.Repeat("long", 4000)+"\n")
	f.nodes[3].Name, f.nodes[3].Site = strings.Repeat("n", 60), strings.Repeat("s", 60)
	srv := serve(t, f)
	b := chromium(t)
	b.look(360, 740, true, "light")
	b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
	for _, path := range []string{"/", "/jobs/" + runningJob, "/jobs/" + waitingJob, "/jobs/wwwww@zaaaa", "/nodes/" + string(nodeID(3)), "/jobs/none"} {
		b.run("open", chromedp.Navigate(srv.URL+path))
		if path != "/jobs/none" {
			b.wait(`/live|ended/.test(document.querySelector("#live").textContent)`)
		}
		if got := b.ask(`document.documentElement.scrollWidth`); got != "360" {
			t.Errorf("%s is %s wide on a screen of 360; too wide: %s", path, got,
				b.ask(`[...document.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > 361 || e.scrollWidth > 361).slice(0, 9).map((e) => e.tagName + "." + e.getAttribute("class") + e.scrollWidth)`))
		}
	}
}

func TestPageTellsThatTheNodeIsGone(t *testing.T) {
	f := scene()
	srv := serve(t, f)
	b := chromium(t)
	b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
	b.wait(`document.querySelector("#live").dataset.tone === "on" && document.querySelector("#lost").hidden`)
	address := srv.Listener.Addr().String()
	srv.Listener.Close()
	srv.CloseClientConnections()
	b.wait(`!document.querySelector("#lost").hidden && document.querySelector("#lost").textContent.includes("trying again")`)

	again := httptest.NewUnstartedServer(newPage(t, f))
	again.Listener.Close()
	listener, err := listen(address)
	if err != nil {
		t.Fatal(err)
	}
	again.Listener = listener
	again.Start()
	t.Cleanup(func() {
		again.CloseClientConnections()
		again.Close()
	})
	b.wait(`document.querySelector("#lost").hidden && document.querySelector("#live").textContent === "live"`)
}

// quiet says whether the browser's user wants no motion.
func (b *browser) quiet(reduce bool) {
	b.t.Helper()
	value := "no-preference"
	if reduce {
		value = "reduce"
	}
	features := []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: value}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		b.t.Fatalf("set the motion: %v", err)
	}
}

func TestMapFollowsTheNetwork(t *testing.T) {
	nodes := network(60)
	f := newFake(nodes)
	b := chromium(t)
	b.run("sign in", chromedp.Navigate(serve(t, f).URL+"/?token="+testToken))
	b.wait(`document.querySelector("#live").textContent === "live"`)
	b.wait(`document.querySelectorAll(".map .dot").length === 60 && document.querySelectorAll(".map .cluster").length === 4`)
	b.wait(`document.querySelectorAll(".map line[data-whose=own]").length > 5 && document.querySelectorAll(".map line[data-whose=other]").length > 60`)
	b.wait(`[...document.querySelectorAll(".map .cluster text")].some((e) => e.textContent === "rennes")`)
	f.change(func() { f.nodes[7].Told, f.nodes[7].Busy = time.Now(), f.nodes[7].Slots })
	dot := fmt.Sprintf(`document.querySelector(".map .dot[data-key=%s]")`, nodes[7].ID)
	b.wait(dot + `.dataset.load === "full"`)
	b.wait(dot + `.querySelector("title").textContent.includes("8 of 8 slots busy")`)
	full := b.ask(`getComputedStyle(` + dot + `.querySelector(".core")).fill`)
	f.change(func() { f.nodes[7].Busy = 0 })
	b.wait(dot + `.dataset.load === "free" && getComputedStyle(` + dot + `.querySelector(".core")).fill !== "` + full + `"`)
	f.change(func() { f.nodes = f.nodes[:59] })
	b.wait(`document.querySelectorAll(".map .dot").length === 59`)
	b.wait(`document.querySelectorAll(".badlist > div").length === 2 && document.querySelector(".badlist").textContent.includes("12")`)
	f.change(func() { f.self.Traffic[3].Recent = 0 })
	b.wait(`document.querySelectorAll(".badlist > div").length === 1`)
	if p := b.console(); len(p) > 0 {
		t.Errorf("errors in the console: %q", p)
	}
}

func TestRipplesOfASearchingJob(t *testing.T) {
	f := scene()
	b := chromium(t)
	b.quiet(false)
	b.run("sign in", chromedp.Navigate(serve(t, f).URL+"/?token="+testToken))
	b.run("open", chromedp.Navigate(b.ask("location.origin")+"/jobs/"+waitingJob))
	b.wait(`document.querySelectorAll(".ripple .hop").length === 4 && document.querySelectorAll(".ripple .mark").length === 12`)
	b.wait(`document.querySelectorAll(".ripple .mark[data-kind=offer]").length === 8 && document.querySelectorAll(".ripple .mark[data-kind=decline]").length === 3`)
	const playing = `document.querySelector(".ripple .hop[data-wave='2']").getAnimations()[0]`
	b.wait(playing + `.effect.getTiming().iterations === Infinity && ` + playing + `.effect.getTiming().delay === 900`)
	b.wait(`document.querySelector(".ripple .mark[data-hop='3'] circle").getAnimations().length === 1`)
	b.wait(playing + `.currentTime > 300`)
	b.run("play again", chromedp.Click("#replay"))
	b.wait(playing + `.playState === "running"`)
	b.quiet(true)
	b.wait(`document.querySelector(".ripple").getAnimations({subtree: true}).length === 0 && !document.querySelector("#replay").checkVisibility()`)

	st := sample(waitingJob, jobs.Running, f.nodes, 40, 30*time.Second, "./lattice")
	st.Rounds = append(st.Rounds, jobs.Round{Number: 1, Radius: 1, Hops: 1, Reached: 12}, jobs.Round{Number: 2, Radius: 2, Hops: 3, Reached: 12, Extended: 4, Messages: 66, Duplicates: 54})
	f.put(st)
	b.wait(`document.querySelectorAll(".ripple .hop").length === 2 && document.querySelector(".ripple").dataset.state === "over"`)
	b.wait(`document.querySelector(".floods tbody tr").textContent.includes("2 → 3") && document.querySelector(".floods tbody tr").textContent.includes("54 twice")`)
	if p := b.console(); len(p) > 0 {
		t.Errorf("errors in the console: %q", p)
	}
}

// TestPictures leaves pictures of the pages for people to look at:
// go test ./node/web -run Pictures -artifacts -outputdir DIR
func TestPictures(t *testing.T) {
	b := chromium(t)
	for name, f := range map[string]*fake{"": scene(), "empty-": newFake(network(1)), "three-": newFake(network(3)), "fifty-": newFake(network(50)), "many-": newFake(network(300))} {
		srv := serve(t, f)
		for _, v := range []struct {
			name   string
			width  int64
			scheme string
		}{{"desktop", 1280, "light"}, {"dark", 1280, "dark"}, {"phone", 360, "light"}} {
			b.look(v.width, 800, v.width < 500, v.scheme)
			b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
			b.wait(`document.querySelector("#live").textContent === "live"`)
			b.picture(name + v.name + "-overview")
			if name != "" {
				continue
			}
			for _, id := range []string{runningJob, waitingJob, failedJob} {
				b.run("open", chromedp.Navigate(srv.URL+"/jobs/"+id))
				b.wait(`/live|ended/.test(document.querySelector("#live").textContent)`)
				b.wait(`document.querySelector("#logstate").textContent !== "Output comes here as it is written."`)
				b.picture(v.name + "-job-" + id[:5])
			}
		}
	}
}
