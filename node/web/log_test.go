package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

// chatter is a job of two ranks that has written much to both streams.
func chatter(lines int) (*fake, jobs.Status) {
	f := newFake(network(3))
	st := sample("a2b3c@zaaaa", jobs.Running, f.nodes, 2, time.Minute, "x")
	f.put(st)
	for i := range lines {
		f.print(st.ID, i%2, work.Stdout, fmt.Sprintf("line %d %s\n", i, strings.Repeat("word ", i%40)))
		if i%100 == 0 {
			f.print(st.ID, 1, work.Stderr, fmt.Sprintf("Oops %d\n", i))
		}
	}
	return f, st
}

const (
	shownRows = `document.querySelectorAll("#log .row:not([hidden])").length`
	atTheEnd  = `(() => { const l = document.querySelector("#log"); return Math.abs(l.scrollHeight - l.clientHeight - l.scrollTop) < 1 && l.scrollHeight > l.clientHeight; })()`
)

func TestLogInChromium(t *testing.T) {
	f, st := chatter(600)
	srv := serve(t, f)
	b := chromium(t)
	b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
	for _, width := range []int64{1400, 390} {
		b.look(width, 844, width < 500, "dark")
		b.run("open", chromedp.Navigate(srv.URL+"/jobs/a2b3c"))
		b.wait(shownRows + ` === 606`)
		b.wait(atTheEnd)
		b.wait(`document.querySelector("#newest").hidden`)
		// The last line is in sight, all of it.
		b.wait(`(() => { const l = document.querySelector("#log"), r = l.lastChild.getBoundingClientRect(), o = l.getBoundingClientRect();
			return r.bottom <= o.bottom && r.top >= o.top && l.lastChild.innerText.includes("line 599"); })()`)
	}
	f.print(st.ID, 0, work.Stdout, strings.Repeat("one more\n", 50))
	b.wait(shownRows + ` === 656`)
	b.wait(atTheEnd)
	b.do(`document.querySelector("#log").scrollTop = 100; await new Promise(requestAnimationFrame)`)
	b.wait(`!document.querySelector("#newest").hidden`)
	f.print(st.ID, 0, work.Stdout, "not followed\n")
	b.wait(shownRows + ` === 657`)
	b.wait(`document.querySelector("#log").scrollTop === 100`)
	b.run("newest", chromedp.Click("#newest"))
	b.wait(atTheEnd)

	b.do(`const e = document.querySelector("#find"); e.value = "oops 3"; e.dispatchEvent(new Event("input"))`)
	b.wait(shownRows + ` === 1 && document.querySelector("#logstate").textContent.startsWith("1 of 657 lines have it.")`)
	f.print(st.ID, 0, work.Stdout, "OOPS 3 again\nother\n")
	b.wait(shownRows + ` === 2`)
	b.do(`const e = document.querySelector("#find"); e.value = "nowhere"; e.dispatchEvent(new Event("input"))`)
	b.wait(shownRows + ` === 0 && !document.querySelector("#log").checkVisibility()`)
	b.do(`const e = document.querySelector("#find"); e.value = ""; e.dispatchEvent(new Event("input"))`)
	b.wait(shownRows + ` === 659`)
	b.wait(atTheEnd)

	b.run("do not wrap", chromedp.Click("#wrap"))
	b.wait(`document.querySelector("#log").scrollWidth > document.querySelector("#log").clientWidth && document.documentElement.scrollWidth === 390`)
	b.wait(atTheEnd)
	b.do(`const e = document.querySelector("#stream"); e.value = "stderr"; e.dispatchEvent(new Event("change"))`)
	b.wait(shownRows + ` === 6 && location.search === "?stream=stderr"`)
	b.wait(`document.querySelector("#savelog").getAttribute("href").endsWith("/log?stream=stderr")`)
	if got := b.do(`return (await fetch(document.querySelector("#savelog").href)).text()`); got != "Oops 0\nOops 100\nOops 200\nOops 300\nOops 400\nOops 500\n" {
		t.Errorf("saved is %q", got)
	}
	if p := b.console(); len(p) > 0 {
		t.Errorf("errors in the console: %q", p)
	}
}

// An array, or job, that has written nothing has no empty box.
func TestNoEmptyLog(t *testing.T) {
	f := newFake(network(3))
	st := sample("a2b3c@zaaaa", jobs.Running, f.nodes, 2, time.Minute, "x")
	st.Array = &jobs.ArrayStatus{Tasks: 9}
	st.Spec.Array = &jobs.Array{}
	f.put(st)
	srv := serve(t, f)
	b := chromium(t)
	b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
	b.run("open", chromedp.Navigate(srv.URL+"/jobs/a2b3c"))
	b.wait(`document.querySelector("#logstate").textContent === "No output so far." && !document.querySelector("#log").checkVisibility()`)
	f.print(st.ID, 0, work.Stdout, "one\n")
	b.wait(`document.querySelector("#log").checkVisibility() && document.querySelector("#log").clientHeight < 60`)
}

func TestLogIsSavedAsItIs(t *testing.T) {
	f, st := chatter(3)
	f.print(st.ID, 0, work.Stdout, "\x1b[31m<b>\xff\r\n")
	srv := serve(t, f)
	for query, want := range map[string]string{
		"":                      "line 0 \nOops 0\nline 1 word \nline 2 word word \n\x1b[31m<b>\xff\r\n",
		"?rank=1":               "Oops 0\nline 1 word \n",
		"?rank=1&stream=stdout": "line 1 word \n",
		"?stream=stderr":        "Oops 0\n",
		"?rank=7":               "",
	} {
		res, body := ask(t, srv, "GET", "/jobs/a2b3c/log"+query, nil)
		if res.StatusCode != 200 || body != want || !strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment; filename=a2b3c") || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %s, %q, want %q; %v", query, res.Status, body, want, res.Header)
		}
	}
	for _, query := range []string{"?rank=-1", "?rank=x", "?stream=both", "?rank=99999999999"} {
		if res, _ := ask(t, srv, "GET", "/jobs/a2b3c/log"+query, nil); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", query, res.Status)
		}
		if res, _ := ask(t, srv, "GET", "/jobs/a2b3c/output"+query, nil); res.StatusCode != http.StatusBadRequest {
			t.Errorf("events of %s: %s", query, res.Status)
		}
	}
	if res, _ := ask(t, srv, "GET", "/jobs/none/log", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("of no job: %s", res.Status)
	}
	st.Forgotten = time.Now()
	f.put(st)
	if res, _ := ask(t, srv, "GET", "/jobs/a2b3c/log", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("of a forgotten job: %s", res.Status)
	}
}
