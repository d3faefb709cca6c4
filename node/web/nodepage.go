package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// maxLooked is how many active jobs are asked which of their workers are at a node.
const maxLooked = 30

// nodeView is everything that the page of one member shows.
type nodeView struct {
	Build   string    `json:"build"`
	Now     string    `json:"now"`
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	Short   string    `json:"short"`
	Site    string    `json:"site"`
	Self    bool      `json:"self"`
	Gone    bool      `json:"gone"` // it is no member any more
	State   string    `json:"state"`
	Tone    string    `json:"tone"`
	Why     string    `json:"why"`
	Busy    string    `json:"busy"`
	Cells   []cell    `json:"cells"`
	Known   bool      `json:"known"` // how it is
	Stats   []counter `json:"stats"`
	Facts   []counter `json:"facts"`
	Hour    chartView `json:"hour"`
	Workers []hereRow `json:"workers"`
	Idle    bool      `json:"idle"`
	Note    string    `json:"note"`
}

// hereRow is a job of this node with workers at that one.
type hereRow struct {
	Key   string `json:"key"`
	Short string `json:"short"`
	Href  string `json:"href"`
	Name  string `json:"name"`
	State string `json:"state"`
	Tone  string `json:"tone"`
	Ranks string `json:"ranks"`
}

// node looks at one member. It is nil if there is none of that ID.
func (s *views) node(ctx context.Context, id vicinity.ID) (*nodeView, error) {
	self, nodes, err := s.members(ctx)
	if err != nil {
		return nil, err
	}
	nodes = nearestFirst(self, nodes)
	i := slices.IndexFunc(nodes, func(n api.NodeInfo) bool { return n.ID == id })
	if i < 0 {
		return nil, nil
	}
	n := nodes[i]
	v := &nodeView{
		Build: s.build, Now: iso(time.Now()), Name: nodeName(n), ID: string(n.ID), Short: n.ID.Short(), Site: siteName(n.Site), Self: n.Self,
		Known: n.Loaded(), Busy: busy(n), Cells: cells(n), Hour: hourChart(nodes[i : i+1]), Why: label(n.Why, textLimit),
	}
	switch {
	case !n.Loaded():
		v.State, v.Tone = "not known", "cancelled"
	case n.State != "":
		v.State, v.Tone = label(n.State, 20), "pending"
	default:
		v.State, v.Tone = "takes work", "completed"
	}
	v.Stats, v.Facts = nodeStats(n), nodeFacts(n)
	v.Workers, v.Note, err = s.here(ctx, id)
	v.Idle = len(v.Workers) == 0
	return v, err
}

func nodeStats(n api.NodeInfo) []counter {
	list := []counter{{"Round trip", latency(time.Duration(n.RTT))}, {"Memory", units.Bytes(n.Memory)}}
	if n.Self {
		list[0].Value = "this node"
	}
	if l := n.Lately; n.Loaded() && l.Sound() {
		if l.Free > 0 {
			list = append(list, counter{"Memory free", units.Bytes(l.Free)})
		}
		list = append(list, counter{"Load", fmt.Sprintf("%.1f", l.Load)})
	}
	if n.GPUs > 0 {
		list = append(list, counter{"GPUs", n.GPUText()})
	}
	if n.Speeds.Clock > 0 {
		list = append(list, counter{"Clock", units.Clock(n.Speeds.Clock)})
	}
	if n.Speeds.Power > 0 {
		list = append(list, counter{"Power of a core", strconv.FormatInt(n.Speeds.Power, 10)})
	}
	if n.Speeds.Bandwidth > 0 {
		list = append(list, counter{"Network", units.Bandwidth(n.Speeds.Bandwidth)})
	}
	return list
}

func nodeFacts(n api.NodeInfo) (list []counter) {
	add := func(key, value string) {
		if value != "" {
			list = append(list, counter{key, value})
		}
	}
	add("Whole ID", string(n.ID))
	add("Platform", label(n.Platform, nameLimit))
	add("Program", label(n.Release, nameLimit))
	add("Cluster", label(n.Cluster, nameLimit))
	if to := speed(n.Bandwidth.To); to != "–" {
		add("Files to it", to)
	}
	if from := speed(n.Bandwidth.From); from != "–" {
		add("Files from it", from)
	}
	if n.Neighbour != "" {
		add("Asked by this node", map[string]string{"near": "among the nearest", "far": "as one far away"}[n.Neighbour])
	}
	var addrs []string
	for _, a := range n.Addrs[:min(len(n.Addrs), 8)] {
		addrs = append(addrs, label(a, 64))
	}
	add("Addresses", strings.Join(addrs, ", "))
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(n.Labels)) {
		labels = append(labels, label(name, nameLimit)+"="+label(n.Labels[name], nameLimit))
	}
	add("Labels", strings.Join(labels[:min(len(labels), 64)], ", "))
	var walls []string
	for _, e := range n.Enforces[:min(len(n.Enforces), 32)] {
		walls = append(walls, label(e, 20))
	}
	add("Workers are confined by", cmp.Or(strings.Join(walls, ", "), "nothing"))
	return list
}

// here lists the jobs that this node knows with workers at another one.
func (s *views) here(ctx context.Context, id vicinity.ID) (rows []hereRow, note string, err error) {
	list, err := s.service.Select(ctx, jobs.Selection{States: stateChoices[1].states})
	if err != nil {
		return nil, "", fmt.Errorf("ask for the jobs: %w", err)
	}
	for i := range list.Active[:min(len(list.Active), maxLooked)] {
		st, err := s.service.Job(ctx, string(list.Active[i].ID))
		if err != nil {
			continue // it was forgotten, or its origin is away
		}
		var ranks []string
		for k := range st.Workers {
			w := &st.Workers[k]
			if w.Node == id && (w.State == jobs.WorkerPreparing || w.State == jobs.WorkerReady || w.State == jobs.WorkerRunning) {
				ranks = append(ranks, strconv.Itoa(w.Rank))
			}
		}
		if len(ranks) == 0 {
			continue
		}
		more := ""
		if len(ranks) > 12 {
			ranks, more = ranks[:12], ", …"
		}
		key := label(string(st.ID), nameLimit)
		rows = append(rows, hereRow{Key: key, Short: label(st.ID.Short(), nameLimit), Href: "/jobs/" + key, Name: jobName(&st.Spec),
			State: stateName(st.State), Tone: stateTone(st.State), Ranks: "rank " + strings.Join(ranks, ", ") + more})
	}
	if len(list.Active) > maxLooked {
		note = fmt.Sprintf("The %d youngest active jobs were looked at.", maxLooked)
	}
	return rows, note, nil
}

func (h *Handler) serveNode(w http.ResponseWriter, r *http.Request) {
	v, err := h.views.nodeOf(r)
	switch {
	case err != nil:
		h.pages.fail(w, err)
	case v == nil:
		h.pages.message(w, http.StatusNotFound, "No such node", "No member has this ID now. It may have left.")
	default:
		h.pages.render(w, http.StatusOK, "node", page{May: mayAct(r), Title: v.Name, Script: "node.js", View: v, Blank: blankNode})
	}
}

func (s *views) nodeOf(r *http.Request) (*nodeView, error) {
	id := vicinity.ID(r.PathValue("id"))
	if !id.Valid() {
		return nil, nil
	}
	return s.node(r.Context(), id)
}

// blankNode are the empty rows that the browser copies.
var blankNode = struct {
	Cell cell
	Fact counter
	Here hereRow
}{}
