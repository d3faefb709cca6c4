package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
)

// An option that cannot be read is named, with what would be right.
func TestParseOptions(t *testing.T) {
	if n, err := parseSize("--mem", "2G"); err != nil || n != 2<<30 {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := parseSize("--mem", "lots"); err == nil || err.Error() != "--mem lots: want a size such as 200M or 2G" {
		t.Errorf("got %v", err)
	}
	if d, err := parseTime("-t", "2d"); err != nil || d != 48*time.Hour {
		t.Errorf("got %v, %v", d, err)
	}
	if _, err := parseTime("-t", "x"); err == nil || err.Error() != "-t x: want a time such as 10m, 1h30m, 2d, HH:MM:SS or seconds" {
		t.Errorf("got %v", err)
	}
}

// The output of a job is limited unless its user says otherwise.
func TestMaxOutput(t *testing.T) {
	for text, want := range map[string]int64{"": 10 << 30, "none": 0, "200": 200, "1M": 1 << 20} {
		if n, err := maxOutput(text); err != nil || n != want {
			t.Errorf("%q: got %d, %v", text, n, err)
		}
	}
	if _, err := maxOutput("lots"); err == nil || err.Error() != "--max-output lots: want a size such as 200M or 2G, or none" {
		t.Errorf("got %v", err)
	}
}

// Without a unit a size is bytes here, and mebibytes elsewhere.
func TestNoBytes(t *testing.T) {
	for text, want := range map[string]string{"2000": "--mem 2000: that is 2000 bytes: did you mean 2000M?", "2000M": "", "4K": "", "1048576": ""} {
		n, err := parseSize("--mem", text)
		if err != nil {
			t.Fatal(err)
		}
		if err := noBytes("--mem", text, n); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// In a zone that is not known a time would be one of UTC.
func TestTimesInAZoneThatIsNotKnown(t *testing.T) {
	now := time.Date(2026, 10, 31, 21, 30, 0, 0, time.UTC)
	for zone, known := range map[string]bool{"": true, "UTC": true, "Europe/Amsterdam": true, ":Europe/Amsterdam": true, "CET-1CEST": false, "<+0530>-5:30": false} {
		t.Setenv("TZ", zone)
		for _, text := range []string{"23:59", "2026-11-01 10:00"} {
			if _, err := until("--begin", text, now); (err == nil) != known || err != nil && !strings.Contains(err.Error(), "TZ="+zone) {
				t.Errorf("TZ=%s, %s: %v", zone, text, err)
			}
		}
		for _, text := range []string{"2h", "2026-11-01T10:00:00+01:00"} {
			if _, err := until("--begin", text, now); err != nil {
				t.Errorf("TZ=%s, %s: %v", zone, text, err)
			}
		}
	}
}

func TestTimesToCome(t *testing.T) {
	zone := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 10, 31, 21, 30, 0, 0, zone)
	for text, want := range map[string]string{
		"2h": "2026-10-31T23:30:00+02:00", "90": "2026-10-31T21:31:30+02:00", "22:00": "2026-10-31T22:00:00+02:00", "22:00:30": "2026-10-31T22:00:30+02:00",
		"21:30": "2026-11-01T21:30:00+02:00", "6:05": "2026-11-01T06:05:00+02:00", "2026-12-01": "2026-12-01T00:00:00+02:00",
		"2026-11-01 08:00": "2026-11-01T08:00:00+02:00", "2026-10-31T22:00:00Z": "2026-10-31T22:00:00Z",
	} {
		if got, err := until("--begin", text, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s is %s, %v, want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
	for text, want := range map[string]string{"2026-10-31": "--begin 2026-10-31: that is over", "tomorrow": "or a moment such as 22:00", "25:00": "or a moment such as 22:00", "": "or a moment", "1800000000": "--begin 1800000000: a number is how many seconds there are until then, at most 31622400"} {
		if got, err := until("--begin", text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, %v, want %s", text, got, err, want)
		}
	}
}

// Ranks are told by numbers and ranges, each once.
func TestParseRanks(t *testing.T) {
	for text, want := range map[string][]int{"3": {3}, "0-3": {0, 1, 2, 3}, "7,2-4,0": {7, 2, 3, 4, 0}, "0-9:4": {0, 4, 8}} {
		if got, err := parseRanks(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if got, err := parseRanks("0-4095"); err != nil || len(got) != jobs.MaxRelease {
		t.Errorf("got %d ranks, %v", len(got), err)
	}
	const few = "more than 4096 ranks: name fewer at once"
	for text, want := range map[string]string{
		"": "want JOB", "3-1": "want JOB", "-1": "want JOB", "1-": "want JOB", "1,,2": "want JOB", "1-2%3": "want JOB", "x": "want JOB", "99999999999999999999": "want JOB",
		"2,1-3": "rank 2 is there twice", "0-4096": few, "0-4000,5000-5100": few, "1073741824": "rank 1073741824: want 0 to 99999",
		"0-9223372036854775807": "rank 9223372036854775807: want 0 to 99999",
	} {
		if got, err := parseRanks(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
}

// A program that makes a checkpoint each minute would fill its output with why no others keep it.
func TestWarningsOfCheckpoints(t *testing.T) {
	for want, a := range map[string]jobs.CheckpointAnswer{
		"zorilla: warning: checkpoint 3: too few\n": {Number: 3, Safe: true, Short: "too few"},
		"": {Number: 3, Safe: true, Short: "too few", Told: true},
	} {
		var warnings strings.Builder
		if err := printCheckpoint(io.Discard, &warnings, &a, true); err != nil || warnings.String() != want {
			t.Errorf("%+v: %q, %v", a, warnings.String(), err)
		}
	}
	if err := printCheckpoint(io.Discard, io.Discard, &jobs.CheckpointAnswer{Number: 3, Short: "too few", Told: true}, true); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("one that is not safe: %v", err)
	}
}
