package web

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
)

const (
	maxAnswerRows = 100
	maxReasons    = 20
)

type whyView struct {
	Known   bool        `json:"known"`
	Summary string      `json:"summary"`
	Wanted  string      `json:"wanted"`
	Asked   string      `json:"asked"`
	Offered string      `json:"offered"`
	Next    string      `json:"next"`
	Reasons []reason    `json:"reasons"`
	Nodes   []answerRow `json:"nodes"`
	Note    string      `json:"note"`
}

type reason struct {
	Key   string `json:"key"`
	Text  string `json:"text"`
	Nodes string `json:"nodes"`
	Share int    `json:"share"` // 0 to 100, of the nodes that declined
}

type answerRow struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	RTT  string `json:"rtt"`
	Text string `json:"text"`
	Tone string `json:"tone"`
}

func explain(ex *jobs.Explanation, now time.Time) whyView {
	v := whyView{
		Known: ex.Summary != "" || ex.Asked > 0, Summary: label(ex.Summary, textLimit),
		Wanted: count(int64(ex.Wanted)), Asked: count(int64(ex.Asked)), Offered: count(int64(ex.Offered)),
	}
	if ex.Next.After(now) {
		v.Next = iso(ex.Next)
	}
	total := 0
	for _, n := range ex.Declined {
		total += max(0, n)
	}
	for why, n := range ex.Declined {
		v.Reasons = append(v.Reasons, reason{Key: label(why, textLimit), Text: label(why, textLimit),
			Nodes: plural(n, "node", "nodes"), Share: 100 * max(0, n) / max(1, total)})
	}
	slices.SortFunc(v.Reasons, func(a, b reason) int { return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Key, b.Key)) })
	v.Reasons = v.Reasons[:min(len(v.Reasons), maxReasons)]
	answers := slices.Clone(ex.Nodes)
	slices.SortFunc(answers, func(a, b jobs.NodeAnswer) int { return cmp.Or(cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.Node, b.Node)) })
	for _, a := range answers[:min(len(answers), maxAnswerRows)] {
		row := answerRow{Key: label(string(a.Node), nameLimit), Name: cmp.Or(label(a.Name, nameLimit), a.Node.Short()),
			RTT: latency(time.Duration(a.RTT)), Text: label(a.Why(), textLimit), Tone: "decline"}
		if a.Offered > 0 {
			row.Tone = "offer"
			row.Text = strings.TrimSuffix("offers "+plural(a.Offered, "worker", "workers")+" · "+row.Text, " · ")
		}
		v.Nodes = append(v.Nodes, row)
	}
	if more := len(answers) - maxAnswerRows; more > 0 {
		v.Note = plural(more, "more node", "more nodes") + " answered."
	}
	return v
}
