// Package form reads the job that a form of the page describes, as the command line reads
// its options.
package form

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs"
)

// MaxBytes bounds a form as it is sent.
const MaxBytes = 64 << 10

// plain are the characters of command lines that are no shell's business, beside letters, digits
// and spaces.
const plain = "-_./,:+@"

// Spec returns the job of a form with these fields, all of them texts for people: "command",
// which is required; "workers", N or MIN..MAX; "slots", each; "memory", each; "time";
// "name"; "outputs", patterns with spaces between them. The error names the field. What else must
// hold of a job is looked at when it is submitted.
func Spec(fields url.Values) (jobs.Spec, error) {
	get := func(name string) string { return strings.TrimSpace(fields.Get(name)) }
	spec := jobs.Spec{Name: get("name"), Min: 1, Max: 1, Slots: 1, Outputs: strings.Fields(get("outputs"))}
	spec.MaxOutput = jobs.DefaultMaxOutput
	var err error
	if spec.Args = command(get("command")); len(spec.Args) == 0 {
		return spec, errors.New("command: what should run?")
	}
	if s := get("workers"); s != "" {
		if spec.Min, spec.Max, err = units.ParseRange(s); err != nil {
			return spec, fmt.Errorf("workers %s: %w", s, err)
		}
	}
	if s := get("slots"); s != "" {
		if spec.Slots, err = strconv.Atoi(s); err != nil || spec.Slots < 1 {
			return spec, fmt.Errorf("slots %s: want a number, as in 1 or 4", s)
		}
	}
	if s := get("memory"); s != "" {
		if spec.Memory, err = units.ParseBytes(s); err != nil {
			return spec, fmt.Errorf("memory %s: %w", s, err)
		}
	}
	if s := get("time"); s != "" {
		d, err := units.ParseSpan(s)
		if err != nil {
			return spec, fmt.Errorf("time %s: %w", s, err)
		}
		spec.Walltime = codec.Duration(d)
	}
	return spec, nil
}

// command returns the words of a command: of a line in which nothing is for a shell those
// that are there, else that of a shell with all of it as its script.
func command(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	shell := strings.ContainsFunc(text, func(r rune) bool {
		word := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r > 0x7f
		return r != ' ' && !word && !strings.ContainsRune(plain, r)
	})
	if shell {
		return []string{"sh", "-c", text}
	}
	return strings.Fields(text)
}
