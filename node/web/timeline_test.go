package web

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/chromedp"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

func TestWhoRanWhere(t *testing.T) {
	f, now := newFake(network(3)), time.Now()
	add := func(id string, state jobs.State, from, to time.Duration, nodes ...int) {
		st := sample(id, state, f.nodes, len(nodes), time.Minute, id[:5])
		st.Started, st.Ended = now.Add(-from), time.Time{}
		if state.Final() {
			st.Ended = now.Add(-to)
		}
		for i, n := range nodes {
			w := &st.Workers[i]
			if w.Node, w.Name, w.Exit = f.nodes[n].ID, f.nodes[n].Name, nil; state.Final() {
				w.Exit = &work.Exit{Started: st.Started, Ended: st.Ended}
			}
		}
		f.put(st)
	}
	add("aaaaa@zeb2a", jobs.Completed, 30*time.Minute, 15*time.Minute, 0, 0, 1)
	add("aaaab@zeb2a", jobs.Failed, 20*time.Minute, 10*time.Minute, 0)
	add("aaaac@zeb2a", jobs.Running, 5*time.Minute, 0, 0)
	add("aaaad@zeb2a", jobs.Completed, 3*time.Hour, 2*time.Hour, 2) // too long ago
	add("aaaae@zeb2a", jobs.Completed, 2*time.Hour, 45*time.Minute, 1)
	add("aaaaf@zeb2a", jobs.Completed, time.Second, 999*time.Millisecond, 1)
	v, err := newPage(t, f).views.timeline(t.Context(), now)
	if err != nil || len(v.Rows) != 2 || v.Rows[0].Name != "anteater" || v.Rows[1].Name != "badger" {
		t.Fatalf("%v, %+v", err, v)
	}
	var got []string
	for _, row := range v.Rows {
		for _, b := range row.Bars {
			got = append(got, fmt.Sprintf("%s %s %.0f+%.0f y%d %s", row.Name[:1], b.Href[6:11], b.X, b.Width, b.Y, b.Tone))
		}
	}
	want := "a aaaaa 500+250 y4 completed, a aaaab 667+167 y16 failed, a aaaac 917+83 y4 running, b aaaae 0+250 y4 completed, b aaaaa 500+250 y4 completed, b aaaaf 997+3 y4 completed"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got\n%s, want\n%s", text, want)
	}
	if !strings.Contains(v.Rows[0].Bars[0].Title, "2 workers · 15 min 00 s") || v.Rows[0].Height != 32 || v.Rows[1].Height != 20 {
		t.Errorf("%+v", v.Rows)
	}
}

// However much ran, and however strange it says it was, the picture is bounded text.
func TestTimelineIsBounded(t *testing.T) {
	const evil = `"><script>alert(1)</script>` + "\u202e"
	f := newFake(network(300))
	for i := range 100 {
		st := sample(fmt.Sprintf("j%04d@zaaaa", i), jobs.Running, f.nodes, 600, time.Hour, evil)
		st.Spec.Name = evil
		for k := range st.Workers {
			st.Workers[k].Name = evil
			if k == 5 {
				st.Workers[k].Node = evil
			}
			if k == 6 {
				st.Workers[k].Exit = &work.Exit{Started: time.Unix(math.MaxInt32, 0), Ended: time.Unix(-math.MaxInt32, 0)}
			}
		}
		f.put(st)
	}
	res, body := ask(t, serve(t, f), "GET", "/timeline", nil)
	if res.StatusCode != 200 || len(body) > 400_000 || strings.Contains(body, "<script>alert") || strings.ContainsRune(body, '\u202e') || strings.Contains(body, "NaN") {
		t.Errorf("%s, %d bytes", res.Status, len(body))
	}
	if rows := strings.Count(body, "<tr data-key=") - 1; rows != maxTimeNodes || !strings.Contains(body, "more nodes are not shown") || !strings.Contains(body, "12 more jobs at the same time") {
		t.Errorf("%d rows", rows)
	}
	if res, _ := ask(t, serve(t, f), "GET", "/timeline", map[string]string{"Cookie": "none=1"}); res.StatusCode != 401 {
		t.Errorf("without a cookie: %s", res.Status)
	}
}

// A picture that is looked at has the jobs that begin, and those that end, without being loaded
// again.
func TestTimelineIsLive(t *testing.T) {
	f := newFake(network(3))
	srv := serve(t, f)
	b := chromium(t)
	b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
	b.run("open", chromedp.Navigate(srv.URL+"/timeline"))
	b.wait(`!document.querySelector(".timeline .empty").hidden && document.querySelector("#live").textContent === "live"`)
	b.do(`document.body.dataset.loaded = "once"`)
	st := sample("aaaac@zeb2a", jobs.Running, f.nodes, 2, 30*time.Minute, "train")
	f.put(st)
	bar := `document.querySelector(".timeline tbody tr rect[data-tone=running]")`
	b.wait(bar + ` && document.querySelector(".timeline .empty").hidden && !document.querySelector(".timeline table").hidden`)
	got := b.do(`const r = ` + bar + `, a = r.parentElement; return [a.getAttribute("href"), a.getAttribute("aria-label"), r.getAttribute("x") > 400 && r.getAttribute("width") > 400,
		a.closest("svg").getAttribute("viewBox"), a.closest("svg").getAttribute("height"), r.getBoundingClientRect().width > 50, document.querySelectorAll(".timeline tbody tr").length].join("|")`)
	rows := len(mustLook(t, f).Rows)
	if want := fmt.Sprintf("true|0 0 1000 20|20|true|%d", rows); !strings.HasPrefix(got, "/jobs/aaaac@zeb2a|train · RUNNING · ") || !strings.HasSuffix(got, want) {
		t.Errorf("the bar is %s; want …%s", got, want)
	}
	st.State, st.Ended = jobs.Completed, time.Now()
	f.put(st)
	b.wait(`document.querySelector(".timeline tbody tr rect[data-tone=completed]") && !` + bar)
	if once := b.ask(`document.body.dataset.loaded`); once != "once" {
		t.Errorf("loaded again: %s", once)
	}
	if p := b.console(); len(p) > 0 {
		t.Errorf("errors in the console: %q", p)
	}
}

func mustLook(t *testing.T, f *fake) timelineView {
	t.Helper()
	v, err := newPage(t, f).views.timeline(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Each look asks for many jobs: there is none at each change, and none that says the same.
func TestTimelineLooksNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(network(3))
		ctx, cancel := context.WithCancel(t.Context())
		l, gone := subscribe(newPage(t, f), ctx, "/timeline/events")
		for i := range 100 { // for ten seconds
			f.put(sample(fmt.Sprintf("j%04d@zaaaa", i), jobs.Running, f.nodes, 1, time.Minute, "x"))
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if n := l.count("event: view\n"); n < 4 || n > 6 {
			t.Errorf("%d views in ten seconds, want about 5", n)
		}
		cancel()
		<-gone
	})
}

// asking counts how often its jobs are asked for.
type asking struct {
	*fake
	lists int
	takes time.Duration
}

func (a *asking) Select(ctx context.Context, q jobs.Selection) (jobs.Selected, error) {
	a.lists++
	time.Sleep(a.takes)
	return a.fake.Select(ctx, q)
}

// Many who look at the picture cost as much as one, and what somebody gave up is shown to nobody else.
func TestTimelineIsSharedByThoseWhoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &asking{fake: newFake(network(3))}
		f.put(sample("a2b3c@zaaaa", jobs.Running, f.nodes, 2, time.Minute, "./simulate"))
		views := newPage(t, f).views
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := views.ranWhere(gone, true); err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			for range 10 {
				if v, err := views.ranWhere(t.Context(), true); err != nil || len(v.Rows) == 0 {
					t.Errorf("%d rows, %v", len(v.Rows), err)
				}
			}
			if f.lists != round+2 {
				t.Errorf("%d lists in %d rounds and before", f.lists, round+1)
			}
			time.Sleep(liveLook)
		}
		for range 2 { // what changes after a look is in the next, for which a stream waits and a page does not
			if _, err := views.ranWhere(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			lists := f.lists
			f.put(sample(fmt.Sprintf("b2b3%d@zaaaa", lists), jobs.Running, f.nodes, 3, time.Minute, "./simulate"))
			old, _ := views.ranWhere(t.Context(), false)
			v, err := views.ranWhere(t.Context(), true)
			if err != nil || old.Jobs == v.Jobs || f.lists != lists+1 {
				t.Errorf("%q, then %q, %v, %d looks", old.Jobs, v.Jobs, err, f.lists-lists)
			}
		}
		lists := f.lists
		f.takes = 50 * time.Millisecond
		f.change(func() {})
		var all sync.WaitGroup
		for range 10 { // while something changes all the time
			all.Go(func() {
				if _, err := views.ranWhere(t.Context(), true); err != nil {
					t.Error(err)
				}
			})
		}
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					f.change(func() {})
				}
			}
		}()
		began := time.Now()
		all.Wait()
		close(stop)
		if took := time.Since(began); took > 2*liveLook || f.lists > lists+2 {
			t.Errorf("ten took %v and %d looks", took, f.lists-lists)
		}
	})
}

// Those who come first share a look, too, as all streams do when a node is back.
func TestFirstLooksAtTheTimelineAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &asking{fake: newFake(network(3))}
		f.put(sample("a2b3c@zaaaa", jobs.Running, f.nodes, 2, time.Minute, "./simulate"))
		f.takes = time.Second
		views := newPage(t, f).views
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if v, err := views.ranWhere(t.Context(), i%2 == 0); err != nil || len(v.Rows) == 0 {
					t.Errorf("%d rows, %v", len(v.Rows), err)
				}
			})
		}
		all.Wait()
		if f.lists != 1 {
			t.Errorf("ten who came first took %d looks", f.lists)
		}
	})
}
