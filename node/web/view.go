package web

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"zorilla/internal/units"
	"zorilla/node/api"
)

// Limits of what one page shows, so that it stays quick whatever the network
// holds. The command line shows everything.
const (
	maxNodeRows = 200
	maxCells    = 32
)

// overview is everything that the first page shows.
type overview struct {
	Build     string      `json:"build"`
	Now       string      `json:"now"`
	Self      selfView    `json:"self"`
	Nodes     []nodeRow   `json:"nodes"`
	NodeNote  string      `json:"nodeNote"`
	Alone     bool        `json:"alone"`
	Map       mapView     `json:"map"`
	Jobs      jobsView    `json:"jobs"`
	Queue     []queueRow  `json:"queue"`
	QueueNote string      `json:"queueNote"`
	Health    healthView  `json:"health"`
	Network   networkView `json:"network"`
}

type selfView struct {
	State      string `json:"state"` // "" = it takes work
	Takes      bool   `json:"takes"`
	Paused     bool   `json:"paused"`
	Drains     bool   `json:"drains"`
	Name       string `json:"name"`
	ID         string `json:"id"`
	Short      string `json:"short"`
	Site       string `json:"site"`
	Platform   string `json:"platform"`
	Release    string `json:"release"`
	Up         period `json:"up"`
	Busy       string `json:"busy"`
	Slots      string `json:"slots"`
	Cells      []cell `json:"cells"`
	Members    string `json:"members"`
	Sites      string `json:"sites"`
	Capacity   string `json:"capacity"`
	Neighbours string `json:"neighbours"`
	Nearest    string `json:"nearest"`
	Enforces   string `json:"enforces"`
}

// cell is one slot, or an equal share of them, in the picture of a node's slots.
type cell struct {
	Key  string `json:"key"`
	Tone string `json:"tone"`
}

type nodeRow struct {
	Key   string `json:"key"`
	Href  string `json:"href"`
	Name  string `json:"name"`
	Short string `json:"short"`
	Site  string `json:"site"`
	Tone  string `json:"tone"` // the site's colour
	RTT   string `json:"rtt"`
	Far   int    `json:"far"`   // length of the latency bar, 0 to 100
	Speed string `json:"speed"` // of files, there
	Slots string `json:"slots"` // or how many of them are busy
	Load  string `json:"load"`
	Link  string `json:"link"` // "this node", "near", "far" or ""
	Title string `json:"title"`
}

// overview looks at the node once.
func (s *views) overview(ctx context.Context, q listQuery) (overview, error) {
	self, nodes, err := s.members(ctx)
	if err != nil {
		return overview{}, err
	}
	list, err := s.service.Select(ctx, q.selection())
	if err != nil {
		return overview{}, fmt.Errorf("ask for the jobs: %w", err)
	}
	queue, err := s.service.Queue(ctx)
	if err != nil {
		return overview{}, fmt.Errorf("ask for the queue: %w", err)
	}
	now := time.Now()
	nodes = nearestFirst(self, nodes)
	tones := groupTones(nodes)
	v := overview{
		Build: s.build, Now: iso(now), Self: describe(self, nodes, now), Health: describeHealth(&s.meter, self, len(nodes), now),
		Map: drawMap(nodes, tones, s.atlas.place(nodes, now)), Jobs: describeJobs(&list, q, now), Network: together(nodes),
	}
	v.Alone = len(nodes) < 2
	for _, n := range nodes[:min(len(nodes), maxNodeRows)] {
		v.Nodes = append(v.Nodes, describeNode(n, tones))
	}
	if more := len(nodes) - maxNodeRows; more > 0 {
		v.NodeNote = fmt.Sprintf("%s farther away: zorilla nodes lists all.", plural(more, "more node is", "more nodes are"))
	}
	v.Queue, v.QueueNote = describeQueue(queue, now)
	if r := self.Results; r != nil && r.Full {
		v.Jobs.Note = fmt.Sprintf("Results of jobs take %s, of %s (--keep-outputs): what nobody has read is kept for a day all the same.",
			units.Bytes(r.Bytes), units.Bytes(r.Limit))
	}
	return v, nil
}

func describe(n api.NodeInfo, nodes []api.NodeInfo, now time.Time) selfView {
	v := selfView{
		Name: nodeName(n), ID: string(n.ID), Short: n.ID.Short(), Site: siteName(n.Site), Platform: label(n.Platform, nameLimit),
		Release: cmp.Or(label(n.Release, nameLimit), "unreleased"), Up: between(n.Started, time.Time{}, now),
		Busy: strconv.Itoa(n.Busy), Slots: strconv.Itoa(n.Slots), Members: count(int64(len(nodes))), Nearest: "–",
		State: label(n.State, 20), Takes: n.State == "", Paused: n.State == "paused", Drains: n.State == "draining",
	}
	v.Cells = cells(n)
	sites, slots, near, distant := make(map[string]bool), 0, 0, 0
	for _, m := range nodes {
		sites[groupOf(m)] = true
		slots += max(0, m.Slots)
		near += b2i(m.Neighbour == "near")
		distant += b2i(m.Neighbour == "far")
	}
	v.Sites = plural(len(sites), "site", "sites")
	if nodes[0].Cluster != "" {
		v.Sites = plural(len(sites), "cluster", "clusters")
	}
	v.Capacity = plural(slots, "slot", "slots")
	v.Neighbours = fmt.Sprintf("%d near, %d far", near, distant)
	if len(nodes) > 1 {
		v.Nearest = latency(time.Duration(nodes[1].RTT))
	}
	for i, e := range n.Enforces[:min(len(n.Enforces), 16)] {
		if i > 0 {
			v.Enforces += ", "
		}
		v.Enforces += label(e, 20)
	}
	v.Enforces = cmp.Or(v.Enforces, "nothing")
	return v
}

// cells pictures the slots of a node.
func cells(n api.NodeInfo) (list []cell) {
	most, busy := min(n.Slots, maxCells), 0
	if n.Slots > 0 {
		busy = int(math.Ceil(float64(min(n.Busy, n.Slots)*most) / float64(n.Slots)))
	}
	for i := range most {
		c := cell{Key: strconv.Itoa(i), Tone: "free"}
		if i < busy {
			c.Tone = "busy"
		}
		list = append(list, c)
	}
	return list
}

func describeNode(n api.NodeInfo, tones map[string]string) nodeRow {
	v := nodeRow{
		Key: string(n.ID), Href: "/nodes/" + string(n.ID), Name: nodeName(n), Short: n.ID.Short(), Site: siteName(n.Site), Tone: tones[groupOf(n)],
		RTT: latency(time.Duration(n.RTT)), Far: far(time.Duration(n.RTT)), Speed: speed(n.Bandwidth.To),
		Slots: strconv.Itoa(n.Slots), Load: load(n),
		Title: fmt.Sprintf("%s · %s · %s memory · %s", n.ID, label(n.Platform, nameLimit), units.Bytes(n.Memory), busy(n)),
	}
	if from := n.Bandwidth.From; from.Rate > 0 {
		v.Title += " · sends " + speed(from)
	}
	if n.Loaded() {
		v.Slots = fmt.Sprintf("%d of %d", n.Busy, n.Slots)
	}
	if n.Cluster != "" && n.Cluster != n.Site {
		v.Title += " · cluster " + label(n.Cluster, nameLimit)
	}
	switch {
	case n.Self:
		v.Link = "this node"
	case n.Neighbour == "near", n.Neighbour == "far":
		v.Link = n.Neighbour
	}
	return v
}

// blankOverview are the empty rows that the browser copies.
var blankOverview = struct {
	Cell    cell
	Job     jobRow
	Waiting queueRow
	Node    nodeRow
	Counter tally
	Group   counterGroup
	Place   legend
	Circle  circle
	Line    line
	Dot     dot
}{}
