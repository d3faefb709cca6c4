package web

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

// An array is summed up, however many tasks it has.
func TestArrayIsSummedUp(t *testing.T) {
	list := facts(&jobs.Status{Spec: jobs.Spec{Min: 1, Max: 50}, Array: &jobs.ArrayStatus{Tasks: 900, Done: 70, Failed: 3}})
	for _, want := range []counter{{"Tasks", "900"}, {"Tasks done", "70"}, {"Tasks failed", "3"}} {
		if !slices.Contains(list, want) {
			t.Errorf("%+v has no %+v", list, want)
		}
	}
}

// What earlier attempts printed is not lost, and the page says how to read it.
func TestPageNamesEarlierAttempts(t *testing.T) {
	retried := jobs.Status{ID: "k7f3q@zeb2a", Spec: jobs.Spec{Min: 1, Max: 1}, AtOrigin: jobs.AtOrigin{Earlier: []int{1, 3}}, State: jobs.Completed}
	if list := commands(&retried); !slices.Contains(list, typed{"Output of attempt 3", "zorilla logs --attempt 3 k7f3q@zeb2a"}) {
		t.Errorf("of earlier attempts: %v", list)
	}
}

func TestOutline(t *testing.T) {
	picture := strings.Repeat("d", 79) + "f" + "dd.d"
	if got, want := outline(picture, 'd'), "M0 0h789v8h-789zM0 10h19v8h-19zM30 10h9v8h-9z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := outline(strings.Repeat("d.", mapCells), 'd'); len(got) > 25*mapCells/2 {
		t.Errorf("an outline of %d bytes", len(got))
	}
}

const bigArray = "b7gar@zaaaa"

// largeArray is a job of 100 000 tasks in 1000 workers, every 50th task of the
// first half failed.
func largeArray(nodes int) *fake {
	f := newFake(network(nodes))
	st := sample(bigArray, jobs.Running, f.nodes, 1000, time.Minute, "./simulate")
	st.Spec.Min, st.Spec.Array = 1, &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 100_000, Step: 1}}}
	st.Array = &jobs.ArrayStatus{Tasks: 100_000, Done: 50_000, Failed: 1000, Running: 1000, Left: 49_000}
	f.put(st)
	codes := make([]int8, 100_000)
	for i := range codes {
		switch {
		case i >= 50_000:
			codes[i] = -1
		case i%50 == 0:
			codes[i] = 3
		}
	}
	f.change(func() { f.jobs[bigArray].codes = codes })
	return f
}

// refreshes reads so many views from the stream of a page and returns the size
// of the largest. Each one is asked for by a change.
func refreshes(t *testing.T, f *fake, srv *httptest.Server, n int) (most int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/jobs/"+bigArray+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(signedIn(t, srv))
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReaderSize(resp.Body, 1<<20)
	for seen := 0; seen < n; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data: {") {
			seen++
			most = max(most, len(line))
			f.change(func() {
				j := f.jobs[bigArray]
				j.version++
				j.status.Array.Done++
				j.codes[j.status.Array.Done] = 0
			})
		}
	}
	return most
}

// The page of a large array stays small: what is sent does not grow with the
// tasks, nor with the workers.
func TestRefreshOfALargeArrayIsSmall(t *testing.T) {
	f := largeArray(12)
	size := refreshes(t, f, serve(t, f), 3)
	t.Logf("%d bytes a refresh, at most one in %v", size, arrayPause)
	if size > 48<<10 {
		t.Errorf("a refresh of %d bytes", size)
	}
}

func TestLargeArrayInChromium(t *testing.T) {
	f := largeArray(12)
	b := chromium(t)
	srv := serve(t, f)
	b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
	b.run("open", chromedp.Navigate(srv.URL+"/jobs/"+bigArray))
	b.wait(`document.querySelector("#live").textContent === "live"`)
	t.Logf("the page is there after %s ms and has %s elements", b.ask(`Math.round(performance.getEntriesByType("navigation")[0].loadEventEnd)`), b.ask(`document.querySelectorAll("*").length`))
	b.wait(`document.querySelectorAll("*").length < 1500`)
	b.wait(`document.querySelectorAll(".tasks tbody tr").length === 50 && document.querySelector(".tasks tbody a").textContent === "1"`)
	b.wait(`document.querySelector(".taskmap .failed").getAttribute("d").startsWith("M0 0h799")`)
	b.wait(`document.querySelector(".tasks .note").textContent.replace(/[^0-9a-z]/g, "").startsWith("50000of100000done1000failed")`)
	// What each colour means stands in the legend, and what is done in the picture.
	b.wait(`[".tasks .legend i", ".taskmap path"].every(what => [...document.querySelectorAll(what)].every(e => {
		const in_ = e.parentElement.getBoundingClientRect(), at = e.getBoundingClientRect();
		return at.left >= in_.left - 1 && at.right <= in_.right + 1 && at.top >= in_.top - 1 && at.bottom <= in_.bottom + 1;
	}))`)
	b.wait(`document.querySelector(".taskmap").getBoundingClientRect().width > 200`)

	// The picture follows, and what a refresh costs does not block the page.
	b.do(`window.longest = 0; new PerformanceObserver((l) => l.getEntries().forEach((e) => { window.longest = Math.max(window.longest, e.duration); })).observe({entryTypes: ["longtask"]})`)
	f.change(func() {
		j := f.jobs[bigArray]
		j.version++
		j.status.Array.Failed++
		j.codes[99_999] = 1
	})
	b.wait(`document.querySelector(".taskmap .failed").getAttribute("d").includes("M790 40h9")`)
	b.wait(`document.querySelector(".tasks .note").textContent.replace(/[^0-9a-z]/g, "").includes("done1001failed")`)
	t.Logf("the longest task of the page's script took %s ms", b.ask(`window.longest`))

	// Failed ones are paged, and a task's output is a click away.
	b.run("more", chromedp.Click(`.tasks a[href="?failed=2500"]`))
	b.wait(`document.querySelector(".tasks tbody a")?.textContent === "2501" && document.querySelector("#live").textContent === "live"`)
	f.change(func() { f.jobs[bigArray].version++ })
	b.wait(`document.querySelector('.tasks a[href="?failed=0"]').checkVisibility() && document.querySelector(".tasks tbody a").textContent === "2501"`)
	b.run("output of a task", chromedp.Click(`.tasks tbody a[data-rank="2501"]`))
	b.wait(`document.querySelector("#rank").value === "2501" && document.querySelector("label[for=rank]").textContent === "Task"`)
	if p := b.console(); len(p) > 0 {
		t.Errorf("errors in the console: %q", p)
	}
	b.look(1280, 800, false, "light")
	b.picture("array")
}
