package top

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

func piece(rank int, stream work.Stream, text string) jobs.Output {
	return jobs.Output{Rank: rank, Attempt: 1, Stream: stream, Data: []byte(text)}
}

func TestLinesArePutTogether(t *testing.T) {
	lines := newTail(true)
	for _, o := range []jobs.Output{
		piece(0, work.Stdout, "one\ntw"), piece(1, work.Stdout, "an"), piece(0, work.Stderr, "oops\n"), piece(0, work.Stdout, "o\n\n"),
		piece(1, work.Stdout, "other\n"), piece(2, work.Stdout, "10%\r20%\r30%\nred \x1b[31mred\x1b[m\a\n\tx\n"), piece(3, work.Stdout, "no end"),
	} {
		lines.add(o)
	}
	want := []string{"0: one", "0: oops", "0: two", "0: ", "1: another", "2: 30%", "2: red red", "2:         x"}
	if got, ended, err := lines.take(); !slices.Equal(got, want) || ended || err != nil {
		t.Errorf("got %q, %t, %v", got, ended, err)
	}
	lines.end(errors.New("lost"))
	if got, ended, err := lines.take(); !slices.Equal(got, []string{"3: no end"}) || !ended || err == nil {
		t.Errorf("at the end %q, %t, %v", got, ended, err)
	}
	// A rank that starts again does not go on with the line of the attempt before.
	again := newTail(true)
	for _, o := range []jobs.Output{piece(0, work.Stdout, "begun"), {Attempt: 2, Stream: work.Stdout, Data: []byte("anew\n")}} {
		again.add(o)
	}
	if got, _, _ := again.take(); !slices.Equal(got, []string{"0: begun", "0: anew"}) {
		t.Errorf("of two attempts %q", got)
	}
	// Tabs lead to every eighth column of the terminal, whatever stands before them.
	for text, want := range map[string]string{"a\tb": "a       b", "日本\tb\t": "日本    b       ", "e\u0301\tb": "e\u0301       b", "12345678\tb": "12345678        b", "\x1b[31mred\x1b[m\tb": "red     b"} {
		if got := outputLine(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	one := newTail(false)
	if one.add(piece(0, work.Stdout, "a\n")); one.lines[0] != "a" {
		t.Errorf("got %q", one.lines)
	}
}

// What nobody takes, and lines without an end, take no more memory than a screen shows.
func TestATailIsBounded(t *testing.T) {
	lines := newTail(false)
	for i := range 5 * maxLines {
		lines.add(piece(0, work.Stdout, fmt.Sprintln(i)))
	}
	if len(lines.lines) > 2*maxLines {
		t.Errorf("%d lines are held", len(lines.lines))
	}
	got, _, _ := lines.take()
	if len(got) != maxLines || got[maxLines-1] != fmt.Sprint(5*maxLines-1) {
		t.Errorf("%d lines, the last %s", len(got), got[len(got)-1])
	}
	lines.add(piece(0, work.Stdout, strings.Repeat("x", 10*maxLine+7)))
	if got, _, _ := lines.take(); len(got) != 10 || len(lines.open[source{0, work.Stdout}].text) != 7 {
		t.Errorf("%d lines of one, %d held", len(got), len(lines.open[source{0, work.Stdout}].text))
	}
	for rank := range 2 * maxSources {
		lines.add(piece(rank, work.Stdout, "begun"))
	}
	if len(lines.open) > maxSources {
		t.Errorf("%d lines are open", len(lines.open))
	}
}

// A log stays at its end while one looks there, and elsewhere stays where one looks.
func TestALogFollows(t *testing.T) {
	s := shown(30, 13) // ten lines of text
	s.press("l")
	job := s.text.job
	more := func(from, to int) {
		var lines []string
		for i := from; i < to; i++ {
			lines = append(lines, fmt.Sprint("line ", i))
		}
		s.follow(job, lines, false, nil)
	}
	at := func() string { return s.text.lines[s.text.first] }
	if more(0, 50); at() != "line 40" {
		t.Errorf("at %s", at())
	}
	s.press("k")
	if more(50, 60); at() != "line 39" {
		t.Errorf("after a look back at %s", at())
	}
	s.press("G")
	if more(60, 70); at() != "line 60" {
		t.Errorf("at the end again at %s", at())
	}
	s.press("g")
	if more(70, 71); at() != "line 0" {
		t.Errorf("at the begin at %s", at())
	}
	if s.follow(job, []string{strings.Repeat("w", 70)}, true, nil); len(s.text.lines) != 71+3 {
		t.Errorf("%d lines of a long one", len(s.text.lines)-71)
	}
	if s.resize(80, 13); len(s.text.lines) != 72 {
		t.Errorf("%d lines on a wide terminal", len(s.text.lines))
	}
	if s.press("g pgdown j"); at() != "line 11" {
		t.Errorf("after a page at %s", at())
	}
	if more(0, 3*maxLines); len(s.text.lines) > maxLines || len(s.text.whole) > maxLines {
		t.Errorf("%d lines are held", len(s.text.lines))
	}
	// What could not be followed any more is followed anew.
	if s.follow(job, nil, true, errors.New("lost")); s.press("l") != (want{showLog, job}) || s.text.err != nil || s.text.ended {
		t.Errorf("after it was lost: ended %t, %v", s.text.ended, s.text.err)
	}
	more(0, 3*maxLines)
	s.follow(jobID("zzzzz"), []string{"not of this"}, false, nil)
	s.fill(job, []string{"no status now"}, nil)
	if last := s.text.lines[len(s.text.lines)-1]; last != fmt.Sprint("line ", 3*maxLines-1) {
		t.Errorf("the last line is %s", last)
	}
}
