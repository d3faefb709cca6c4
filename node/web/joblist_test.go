package web

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"zorilla/jobs"
)

// listed asks a page for its jobs, as the address says.
func listed(t *testing.T, f *fake, address string) jobsView {
	t.Helper()
	address, _, _ = strings.Cut(address, "#") // as browsers do
	v, err := newPage(t, f).views.overview(t.Context(), readQuery(httptest.NewRequest("GET", address, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return v.Jobs
}

// crowd is a node with very many jobs, two of which have not ended and are the oldest.
func crowd(ended int) *fake {
	f := newFake(network(2))
	f.put(sample("aaaaa@zeb2a", jobs.Running, f.nodes, 1, 2*time.Hour, "./long", "--dir", "Weather"))
	f.put(sample("aaaab@zeb2a", jobs.Pending, f.nodes, 1, time.Hour, "second"))
	for i := range ended {
		state, name := jobs.Completed, "true"
		if i%100 == 7 {
			state, name = jobs.Failed, "weather-"+fmt.Sprint(i)
		}
		st := sample(fmt.Sprintf("b%c%c%c%c@zeb2a", 'a'+i/17576%26, 'a'+i/676%26, 'a'+i/26%26, 'a'+i%26), state, f.nodes, 1, time.Minute, "true")
		st.Spec.Name, st.Ended = name, time.Now().Add(-time.Duration(i)*time.Second)
		f.put(st)
	}
	return f
}

// Whatever has ended meanwhile, no job that has not is missing, those with workers come
// first, and what has ended is on its pages, each once.
func TestNoActiveJobIsMissing(t *testing.T) {
	f := crowd(45)
	v := listed(t, f, "/")
	if len(v.Active) != 2 || v.Active[0].Key != "aaaaa@zeb2a" || v.Active[1].Key != "aaaab@zeb2a" || v.Open {
		t.Fatalf("%d active jobs, ended ones open: %t", len(v.Active), v.Open)
	}
	if v.Count != "1 active, 1 waiting, 45 ended" || v.Sum != "45 jobs have ended" || v.Last != "true completed" || v.Pages.Where != "" {
		t.Errorf("count %q, sum %q, last %q, pages %q", v.Count, v.Sum, v.Last, v.Pages.Where)
	}
	seen := map[string]bool{}
	for href, n := "/", 0; href != ""; n++ {
		v := listed(t, f, href)
		for _, row := range v.Ended {
			seen[row.Key] = true
		}
		if len(v.Active) != 2 || n > 3 {
			t.Fatalf("page %d of those that have ended: %d active jobs", n, len(v.Active))
		}
		if href = ""; v.Past.After != "" {
			href = "/" + v.Past.After
		} else if v.Past.Where != "41 to 45 of 45" || v.Past.Before != "?ended=20#ended" || !v.Open {
			t.Errorf("the last page: %+v, open %t", v.Past, v.Open)
		}
	}
	if len(seen) != 45 {
		t.Errorf("%d of 45 jobs are on some page", len(seen))
	}
	for i := range activeRows {
		f.put(sample(fmt.Sprintf("ca%c%c@zeb2a", 'a'+i/26, 'a'+i%26), jobs.Pending, f.nodes, 1, time.Minute, "x"))
	}
	first := listed(t, f, "/")
	rest := listed(t, f, "/"+first.Pages.After)
	if first.Active[0].Key != "aaaaa@zeb2a" || len(first.Active) != activeRows || len(rest.Active) != 2 || rest.Active[1].Key != "aaaab@zeb2a" || rest.Pages.Before == "" {
		t.Errorf("%d active jobs, then %d; the first is %s", len(first.Active), len(rest.Active), first.Active[0].Key)
	}
}

func TestSearchOfJobs(t *testing.T) {
	f := crowd(300)
	for _, c := range []struct {
		query         string
		active, ended int
		why           string
	}{
		{"q=weather", 1, 3, "names and commands, in any case"},
		{"q=weather-107", 0, 1, "a name"},
		{"q=aaaa", 2, 0, "the beginning of an ID"},
		{"q=zeb2a", 0, 0, "every ID contains its origin"},
		{"state=failed", 0, 3, "a state"},
		{"state=waiting", 1, 0, "a state"},
		{"state=failed&q=weather-2", 0, 1, "both"},
		{"state=nonsense&ended=-5&active=x", 2, 20, "what makes no sense is left out"},
		{"ended=99999999999999999999", 2, 20, "the same"},
		{"ended=5000", 2, 0, "beyond the end"},
		{"q=" + strings.Repeat("y", 5000), 0, 0, "too long"},
		{"q=%ff%00%3Cscript%3E", 0, 0, "no text"},
	} {
		if v := listed(t, f, "/?"+c.query); len(v.Active) != c.active || len(v.Ended) != c.ended || v.None != (c.active+c.ended == 0 && c.query != "ended=5000") {
			t.Errorf("%.40s (%s): %d active, %d ended, none %t", c.query, c.why, len(v.Active), len(v.Ended), v.None)
		}
	}
	v := listed(t, f, "/?q=true&state=completed")
	next, err := url.Parse(v.Past.After)
	if err != nil || next.Query().Get("q") != "true" || next.Query().Get("state") != "completed" || next.Query().Get("ended") != "20" {
		t.Errorf("the next page is %q", v.Past.After)
	}
	srv := serve(t, f)
	res, body := ask(t, srv, "GET", "/?q="+url.QueryEscape(`"><script>alert(1)</script>`), nil)
	if res.StatusCode != 200 || strings.Contains(body, "<script>alert") || !strings.Contains(body, `value="&#34;&gt;&lt;script&gt;alert(1)`) {
		t.Error("what was searched for is not in the form, or is markup")
	}
}

// With ten thousand jobs the page stays small.
func TestPageOfTenThousandJobs(t *testing.T) {
	srv := serve(t, crowd(10_000))
	start := time.Now()
	res, body := ask(t, srv, "GET", "/", map[string]string{})
	t.Logf("%d bytes within %v", len(body), time.Since(start))
	if res.StatusCode != 200 || len(body) > 100_000 {
		t.Errorf("%s, %d bytes", res.Status, len(body))
	}
	if n := len(regexp.MustCompile(`<li data-key="[ab]`).FindAllString(body, -1)); n != 2+endedRows {
		t.Errorf("%d jobs are on it", n)
	}
}

// A search works by itself and goes on by itself: what comes to fit appears, what does not
// stays away, and what ended is there when it is unfolded.
func TestSearchStaysAliveInChromium(t *testing.T) {
	f := crowd(30)
	srv := serve(t, f)
	b := chromium(t)
	b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
	b.wait(`document.querySelector("#live").textContent === "live"`)
	b.wait(`!document.querySelector("#ended .joblist").checkVisibility() && document.querySelectorAll(".joblist a").length === 22`)
	b.run("unfold", chromedp.Click("#ended summary"))
	b.wait(`document.querySelector("#ended .joblist").checkVisibility()`)
	b.do(`document.querySelector(".find input").value = "weather"`)
	b.run("search", chromedp.Click(".find button"))
	b.wait(`new URLSearchParams(location.search).get("q") === "weather" && document.querySelector("#live").textContent === "live"`)
	b.wait(`document.querySelectorAll(".joblist a").length === 2 && document.querySelector("#ended .joblist").checkVisibility()`)
	f.put(sample("zzzzz@zeb2a", jobs.Running, f.nodes, 1, time.Second, "other"))
	f.put(sample("yyyyy@zeb2a", jobs.Running, f.nodes, 1, time.Second, "./weather"))
	b.wait(`document.querySelectorAll(".joblist a").length === 3 && document.querySelector(".joblist b").textContent === "./weather"`)
	b.wait(`document.querySelector(".jobs .note").textContent === "3 active, 1 waiting, 30 ended"`)
	b.run("show all", chromedp.Click(".find a"))
	b.wait(`location.search === "" && document.querySelector("#live").textContent === "live"`)
	b.run("unfold", chromedp.Click("#ended summary"))
	b.run("older ones", chromedp.Click("#ended .pager a:not([hidden])"))
	b.wait(`location.search === "?ended=20" && document.querySelectorAll("#ended .joblist a").length === 10 && document.querySelectorAll(".jobs > .joblist a").length === 4`)
	if p := b.console(); len(p) > 0 {
		t.Errorf("errors in the console: %q", p)
	}
}
