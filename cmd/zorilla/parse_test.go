package main

import (
	"testing"
	"time"
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
