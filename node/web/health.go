package web

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"zorilla/internal/units"
	"zorilla/node/api"
)

// healthView is what the node knows of the state of its network: its links,
// what they cost, and what has come in that should not have.
type healthView struct {
	Links    string         `json:"links"`
	Measured string         `json:"measured"`
	Rate     string         `json:"rate"`
	Volume   string         `json:"volume"`
	Bad      []tally        `json:"bad"` // what has come lately
	Verdict  string         `json:"verdict"`
	Groups   []counterGroup `json:"groups"`
}

type tally struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	Title string `json:"title"` // what is counted
}

type counterGroup struct {
	Key      string  `json:"key"`
	Counters []tally `json:"counters"`
}

// maxCounters bounds what is counted.
const maxCounters = 200

// rateWindow is the time over which messages are averaged.
const rateWindow = 10 * time.Second

// meter turns a counter of messages and one of bytes into rates.
type meter struct {
	mu        sync.Mutex // guards what follows
	at        time.Time
	messages  int64
	bytes     int64
	perSecond [2]float64 // messages, bytes
}

// read returns messages and bytes a second over the last window, at first since
// the node started.
func (m *meter) read(started, now time.Time, messages, bytes int64) (perSecond [2]float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, gone := m.at, messages < m.messages // the node has started again
	if from.IsZero() || gone {
		from, m.messages, m.bytes = started, 0, 0
	}
	elapsed := now.Sub(from)
	if elapsed < rateWindow && !m.at.IsZero() && !gone {
		return m.perSecond
	}
	seconds := max(elapsed.Seconds(), 1)
	m.perSecond = [2]float64{float64(messages-m.messages) / seconds, float64(bytes-m.bytes) / seconds}
	m.at, m.messages, m.bytes = now, messages, bytes
	return m.perSecond
}

func describeHealth(m *meter, self api.NodeInfo, members int, now time.Time) healthView {
	t := self.Traffic
	rate := m.read(self.Started, now, t.Of("vicinity", "messages sent"), t.Of("vicinity", "bytes sent"))
	v := healthView{
		Links:    count(t.Of("vicinity", "number of links")),
		Measured: fmt.Sprintf("%s of %s", count(t.Of("vicinity", "number of members measured")), count(int64(members-1))),
		Rate:     fmt.Sprintf("%.1f/s", rate[0]), Volume: units.Bytes(int64(rate[1])) + "/s",
	}
	watched := 0
	for _, c := range t[:min(len(t), maxCounters)] {
		group := label(c.Group, nameLimit)
		row := tally{Key: label(c.Name, nameLimit), Value: amount(c.Name, c.Value), Title: label(c.Help, textLimit)}
		if c.Bad {
			watched++
			if c.Recent > 0 {
				now := row
				now.Key, now.Value = group+": "+row.Key, amount(c.Name, c.Recent)
				v.Bad = append(v.Bad, now)
			}
		}
		if c.Value == 0 {
			continue // what has not happened is no news
		}
		if n := len(v.Groups); n == 0 || v.Groups[n-1].Key != group {
			v.Groups = append(v.Groups, counterGroup{Key: group})
		}
		last := &v.Groups[len(v.Groups)-1]
		last.Counters = append(last.Counters, row)
	}
	v.Verdict = "All is well: nothing had to be dropped in the last ten minutes."
	if len(v.Bad) > 0 {
		v.Verdict = fmt.Sprintf(
			"Messages of %s were dropped in the last ten minutes, of %d that are watched for. Some are usual when nodes come, go or are busy.",
			plural(len(v.Bad), "kind", "kinds"), watched)
	}
	return v
}

// amount writes a counter; names say which ones count bytes.
func amount(name string, n int64) string {
	if strings.Contains(name, "bytes") {
		return units.Bytes(n)
	}
	return count(n)
}
