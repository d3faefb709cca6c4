package web

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

func TestOutputIsMadePlain(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                         "plain\ttext\n",
		"\x1b[1;31mred\x1b[0m":                  "red",
		"\x1b]0;title\aafter":                   "after",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\a":  "link",
		"\x1b(Bset":                             "set",
		"\x1bPq#0\x1b\\sixel":                   "sixel",
		"\x1b]never ends\nnext line":            "\nnext line",
		"\x1b[31\x00x":                          "x",
		"50%\r100%\r\ndone\r\n":                 "50%\n100%\ndone\n",
		"bell\a back\b null\x00 del\x7f c1\x9b": "bell back null del c1\ufffd",
		"caf\u00e9 \u65e5\u672c":                "caf\u00e9 \u65e5\u672c",
		"\xff\xfe":                              "\ufffd\ufffd",
		"gpj.\u202eexe":                         "gpj.\ufffdexe",
		"\u0085\u009b31m":                       "31m",
	} {
		whole := new(scanner).scan([]byte(in))
		if whole != want {
			t.Errorf("%q became %q, want %q", in, whole, want)
		}
		var s scanner
		var pieces strings.Builder
		for _, b := range []byte(in) {
			pieces.WriteString(s.scan([]byte{b}))
		}
		if pieces.String() != whole {
			t.Errorf("%q byte by byte became %q, want %q", in, pieces.String(), whole)
		}
	}
}

func FuzzCleanedOutputIsPlain(f *testing.F) {
	f.Add([]byte("a\x1b[31mb\r\n"), 3)
	f.Add([]byte("\x1b]0;\xe2\x82"), 1)
	f.Add([]byte("\xe2\x82\xac\u202e\x1b\x1b\\"), 2)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		whole := new(scanner).scan(data)
		if !utf8.ValidString(whole) || strings.ContainsFunc(whole, func(r rune) bool {
			return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control))
		}) {
			t.Fatalf("%q became %q", data, whole)
		}
		cut = max(0, min(cut, len(data)))
		var s scanner
		if got := s.scan(data[:cut]) + s.scan(data[cut:]); got != whole {
			t.Fatalf("%q cut at %d became %q, whole %q", data, cut, got, whole)
		}
	})
}

func TestSourcesDoNotMix(t *testing.T) {
	c := newCleaner()
	c.clean(jobs.Output{Rank: 0, Attempt: 1, Stream: work.Stdout, Data: []byte("\x1b[3")})
	if p := c.clean(jobs.Output{Rank: 0, Attempt: 1, Stream: work.Stderr, Data: []byte("1m")}); p.Text != "1m" || !p.Err {
		t.Errorf("standard error got %+v", p)
	}
	if p := c.clean(jobs.Output{Rank: 1, Attempt: 1, Stream: work.Stdout, Data: []byte("2m")}); p.Text != "2m" || p.Rank != 1 {
		t.Errorf("rank 1 got %+v", p)
	}
	if p := c.clean(jobs.Output{Rank: 0, Attempt: 1, Stream: work.Stdout, Data: []byte("1mred")}); p.Text != "red" {
		t.Errorf("rank 0 got %+v", p)
	}
}

func TestTailDropsTheOldest(t *testing.T) {
	tl := newTail(10)
	for _, s := range []string{"aaaa", "bbbb", "cccc", "dddd"} {
		tl.add(piece{Rank: int(s[0]), Text: s})
	}
	b, ended, err := tl.take()
	if len(b.Pieces) != 2 || b.Pieces[0].Text != "cccc" || b.Skipped != 8 || ended || err != nil {
		t.Errorf("got %+v, %v, %v", b, ended, err)
	}
	tl.add(piece{Text: strings.Repeat("x", 100)}) // one that is too long alone is kept
	tl.end(nil)
	if b, ended, _ := tl.take(); len(b.Pieces) != 1 || b.Skipped != 0 || !ended {
		t.Errorf("got %+v, %v", b, ended)
	}
	if b, ended, _ := tl.take(); len(b.Pieces) != 0 || !ended {
		t.Errorf("got %+v, %v", b, ended)
	}
}
