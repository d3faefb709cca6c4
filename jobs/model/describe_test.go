package model

import (
	"fmt"
	"strings"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
)

// Describe is a message in words for people; the first says what kind it is. What only
// matters between runs is in brackets at the end.
func (m Message) Describe() string {
	switch b := m.body.(type) {
	case nil:
		return "calls for workers"
	case wire.Packet:
		return describePacket(&b)
	case request:
		switch r := b.body.(type) {
		case *wire.Grant:
			return fmt.Sprintf("grants %s [#%d, key %04x]", named(r.Ranks), b.number, r.Key&0xffff)
		case *wire.Start:
			return "starts " + named(r.Ranks)
		case *wire.Release:
			text := "releases " + named(r.Ranks)
			if r.Stop {
				text += ", whose processes are to end"
			}
			return text
		case *wire.Report:
			return describeReport(r) + fmt.Sprintf(" [#%d]", b.number)
		case *wire.Measure:
			return fmt.Sprintf("asks for round trips to %d nodes [#%d]", len(r.Nodes), b.number)
		case *wire.Keep:
			return describeKeep(r) + fmt.Sprintf(" [#%d]", b.number)
		case *wire.Book:
			return describeBook(r) + fmt.Sprintf(" [#%d]", b.number)
		case wants:
			return fmt.Sprintf("wants checkpoint %d of rank %d [#%d]", r.number, r.rank, b.number)
		case fetch:
			return fmt.Sprintf("fetches files of %s [#%d]", named([]jobs.RankAttempt{r.RankAttempt}), b.number)
		}
		return fmt.Sprintf("asks how it has ended [#%d]", b.number)
	case reply:
		return fmt.Sprintf("answers %s [#%d]", describeReply(&b), b.number)
	}
	return fmt.Sprintf("sends %T", m.body)
}

func describeBook(b *wire.Book) string {
	switch {
	case b.New != nil:
		return fmt.Sprintf("books %d workers in %d ms for %d ms, lease %d ms", b.New.Workers, b.New.In, b.New.Length, b.Lease)
	case b.Lease > 0:
		return fmt.Sprintf("confirms a booking for %d ms", b.Lease)
	}
	return "ends a booking"
}

func describeKeep(k *wire.Keep) string {
	text := "tells what is needed:"
	if k.New != nil {
		text = fmt.Sprintf("wants checkpoint %d of rank %d kept;", k.New.Number, k.New.Rank)
	}
	for _, n := range k.Needed {
		text += fmt.Sprintf(" rank %d from %d", n.Rank, n.Oldest)
	}
	if k.All {
		text += " nothing else"
	}
	return text
}

func describePacket(p *wire.Packet) string {
	switch a := p.Answer; {
	case p.Grant != "":
		return fmt.Sprintf("announces a grant of %d", p.Workers)
	case p.Recall != "":
		return "recalls what is held for others"
	case a == nil && p.Forget:
		return "returns the offer, and looks no more"
	case a == nil:
		return "returns the offer"
	case a.Workers > 0:
		text := fmt.Sprintf("offers %d", a.Workers)
		if a.Round == 0 {
			text += " by itself"
		}
		return text + fmt.Sprintf(" [round %d, key %04x]", a.Round, a.Key&0xffff)
	case a.Held > 0:
		return fmt.Sprintf("declines: %s, holds %d for others [round %d]", a.Reason, a.Held, a.Round)
	default:
		return fmt.Sprintf("declines: %s [round %d]", a.Reason, a.Round)
	}
}

func describeReport(r *wire.Report) string {
	parts := []string{}
	for i := range r.Workers {
		k := &r.Workers[i]
		text := fmt.Sprintf("%s %s", named([]jobs.RankAttempt{k.RankAttempt}), k.State)
		if k.Exit != nil {
			text += fmt.Sprintf(" with %d", k.Exit.Code)
		}
		if k.Reason != "" {
			text += ": " + k.Reason
		}
		parts = append(parts, text)
	}
	return "reports " + strings.Join(parts, "; ")
}

func describeReply(r *reply) string {
	switch {
	case r.failed:
		return "that it cannot"
	case r.refused != "":
		return "no: " + r.refused
	case r.state != "":
		return string(r.state)
	case r.ack.State == "":
		return "yes"
	}
	text := string(r.ack.State)
	for i := range r.ack.Workers {
		k := &r.ack.Workers[i]
		worker := named([]jobs.RankAttempt{k.RankAttempt})
		switch {
		case k.Drop:
			text += "; drop " + worker
		case k.Done:
			text += "; forget " + worker
		case k.Stop:
			text += "; stop " + worker
		}
	}
	if r.ack.Start != nil {
		text += "; start " + named(r.ack.Start.Ranks)
	}
	return text
}

// written is an event in a journal.
func written(ev *record.Event) string {
	text := "writes " + string(ev.Kind)
	if ev.Node != "" {
		text += " " + ev.Node.Short()
	}
	if len(ev.Ranks) > 0 {
		text += " " + named(ev.Ranks)
	}
	if b := ev.Booking; b != nil {
		text += fmt.Sprintf(" %x for %v at %d nodes", b.Key&0xffff, b.At.Sub(ev.At), len(b.Parts))
	}
	if ev.State != "" {
		text += " " + string(ev.State)
	}
	if ev.Reason != "" {
		text += ": " + ev.Reason
	}
	return text
}

// named lists workers as RANK.ATTEMPT; none are all.
func named(list []jobs.RankAttempt) string {
	if len(list) == 0 {
		return "everything"
	}
	var parts []string
	for _, ra := range list {
		parts = append(parts, fmt.Sprintf("%d.%d", ra.Rank, ra.Attempt))
	}
	return strings.Join(parts, " ")
}
