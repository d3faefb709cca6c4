package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"zorilla/node/web/form"
)

// post sends a form as the page of the owner does.
func post(t *testing.T, srv *httptest.Server, path string, fields url.Values) (code int, body string) {
	t.Helper()
	cookie, key := enter(t, srv, testToken)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, strings.NewReader(fields.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(cookie)
	for name, value := range map[string]string{keyHeader: key, "Origin": srv.URL, "Content-Type": "application/x-www-form-urlencoded"} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(said)
}

func TestOwnerSubmits(t *testing.T) {
	f := scene()
	srv := serve(t, f)
	code, body := post(t, srv, submitAct, url.Values{"command": {"echo $ZORILLA_RANK"}, "workers": {"2..16"}, "name": {"mine"}})
	if code != 200 || !strings.Contains(body, `"href":"/jobs/again@zaaaa"`) {
		t.Errorf("%d, %s", code, body)
	}
	if got := f.did(); len(got) != 1 || got[0] != `submit ["sh" "-c" "echo $ZORILLA_RANK"] <nil>` {
		t.Errorf("done was %q", got)
	}
	if spec := f.jobs["again@zaaaa"].status.Spec; spec.Min != 2 || spec.Max != 16 || spec.Name != "mine" {
		t.Errorf("submitted was %+v", spec)
	}
	for what, fields := range map[string]url.Values{
		"command: what should run?": {},
		"workers 9..1: want N":      {"command": {"x"}, "workers": {"9..1"}},
		"has more than 64 KiB":      {"command": {strings.Repeat("x", form.MaxBytes)}},
	} {
		if code, body := post(t, srv, submitAct, fields); code != http.StatusConflict || !strings.Contains(body, what) || len(body) > 1000 {
			t.Errorf("%s: %d, %.200s", what, code, body)
		}
	}
	if got := f.did(); len(got) != 1 {
		t.Errorf("done was %q", got)
	}
}

func TestSubmitInChromium(t *testing.T) {
	f := scene()
	srv := serve(t, f)
	b := chromium(t)
	for _, width := range []int64{390, 1400} {
		b.look(width, 844, width < 500, "light")
		b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
		b.wait(`document.querySelector("#live").textContent === "live"`)
		b.run("open", chromedp.Click("#submit summary"))
		b.run("describe", chromedp.SetValue(`#submit [name="command"]`, "hostname -f"), chromedp.SetValue(`#submit [name="workers"]`, "none"))
		b.run("submit", chromedp.Click(`#submit [type="submit"]`))
		b.wait(`document.querySelector("#toast").innerText.includes("workers none: want N")`)
		b.run("better", chromedp.SetValue(`#submit [name="workers"]`, "4"), chromedp.Click(`#submit [type="submit"]`))
		b.wait(`document.querySelector("#toast a")?.getAttribute("href") === "/jobs/again@zaaaa" && document.querySelector("#submit [type=submit]").disabled === false`)
		b.wait(`document.documentElement.scrollWidth === ` + map[int64]string{390: "390", 1400: "1400"}[width])
		b.picture("submit")
	}
	if got := f.did(); len(got) != 2 || got[1] != `submit ["hostname" "-f"] <nil>` {
		t.Errorf("done was %q", got)
	}
	if p := b.console(); len(p) != 2 || !strings.Contains(p[0], "409") { // the browser's own word of the refusals
		t.Errorf("errors in the console: %q", p)
	}
	// Who may only look is offered nothing.
	b.run("sign in as a reader", chromedp.Navigate(srv.URL+"/?token="+ReadOnly(testToken)))
	b.wait(`document.querySelector("#live").textContent === "live" && !document.querySelector("#submit")`)
}
