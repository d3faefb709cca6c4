package wire

import (
	"encoding/json"
	"strconv"

	"zorilla/jobs"
)

// TopologyFileName is the file beside the host file by which a worker learns how the groups of its job
// hang together.
const TopologyFileName = "topology.json"

// Topology is what the topology file of a job with groups says (MPI programs build communicators of it, as the
// QosCosGrid paper's section 3 does with MPICH-G2's topology colours).
type Topology struct {
	Depth  int             `json:"depth"` // levels of links, the widest is level 0
	Links  []TopologyLink  `json:"links"`
	Groups []TopologyGroup `json:"groups"`
	Ranks  []TopologyRank  `json:"ranks"`
}

// TopologyLink is a link of the job's file; its colour is its place there, from 0.
type TopologyLink struct {
	Name   string   `json:"name"`
	Color  int      `json:"color"`
	Groups []string `json:"groups"`
}

// TopologyGroup is ranks First to First+Size-1.
type TopologyGroup struct {
	Name  string `json:"name"`
	First int    `json:"first"`
	Size  int    `json:"size"`
}

// TopologyRank is where a rank belongs. Colors has the colour of its link at each level, groups.None (-1)
// where it is in none.
type TopologyRank struct {
	Rank      int    `json:"rank"`
	Group     string `json:"group"`
	GroupRank int    `json:"group_rank"`
	Colors    []int  `json:"colors"`
}

// TopologyOf describes a job with groups whose sizes are chosen.
func TopologyOf(spec *jobs.Spec) Topology {
	t := Topology{Depth: spec.Depth(), Links: []TopologyLink{}}
	for i, l := range spec.Links {
		t.Links = append(t.Links, TopologyLink{l.Name, i, l.Groups})
	}
	for i, g := range spec.Groups {
		t.Groups = append(t.Groups, TopologyGroup{g.Name, len(t.Ranks), g.Max})
		colours := spec.Colours(i)
		for number := range g.Max {
			t.Ranks = append(t.Ranks, TopologyRank{len(t.Ranks), g.Name, number, colours})
		}
	}
	return t
}

// TopologyFile is the text of a worker's topology file.
func TopologyFile(spec *jobs.Spec) string {
	b, err := json.Marshal(TopologyOf(spec))
	if err != nil {
		panic(err) // it is plain data
	}
	return string(b) + "\n"
}

// TopologyVariables are the environment variables by which a rank of a job with groups learns its place.
func TopologyVariables(spec *jobs.Spec, rank int) map[string]string {
	group, number := spec.GroupOf(rank)
	if group < 0 {
		return nil
	}
	return map[string]string{
		"ZORILLA_GROUP":           spec.Groups[group].Name,
		"ZORILLA_GROUP_RANK":      strconv.Itoa(number),
		"ZORILLA_GROUP_SIZE":      strconv.Itoa(spec.Groups[group].Max),
		"ZORILLA_TOPOLOGY_DEPTH":  strconv.Itoa(spec.Depth()),
		"ZORILLA_TOPOLOGY_COLORS": spec.ColourText(group),
	}
}
