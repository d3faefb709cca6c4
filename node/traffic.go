package node

import (
	"slices"

	"zorilla/flood"
	"zorilla/internal/portion"
	"zorilla/internal/uplink"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/fastrpc"
	"zorilla/vicinity"
)

// traffic tells all counters of all parts: whatever can go wrong on the network
// is counted somewhere in this list. Bad is only what nobody should send. A
// packet that was lost, a member that has just left and a peer of before that
// is gone are bad luck, which a healthy network has as well. It is a list for
// people: nothing is scraped, so there is no use for prometheus/client_golang.
func (n *network) traffic() api.Traffic {
	return slices.Concat(
		gossipTraffic(n.overlay.Stats(), n.unknown.Load()),
		vicinityTraffic(n.near.Stats()), floodTraffic(n.flooder.Stats()), jobsTraffic(n.jobs.Counts()),
		earlyTraffic(n.early.Stats()), uplinkTraffic(n.flow.Uplink().Stats()), requestsTraffic(n.portions.Counts()),
	)
}

func vicinityTraffic(v vicinity.Stats) api.Traffic {
	return counters("vicinity",
		counted("number of links", int64(v.Links), "neighbours now, near and far"),
		counted("number of members measured", int64(v.Measured), "members whose round trip is known now"),
		counted("messages sent", v.Sent, "pings and lists, with their answers"),
		counted("messages received", v.Received, "the same of others"),
		counted("bytes sent", v.SentBytes, "in these messages"),
		counted("bytes received", v.ReceivedBytes, "in these messages"),
		bad("malformed", v.Malformed, "messages of wrong form"),
		bad("absurd", v.Absurd, "round trips and coordinates that cannot be true"),
		counted("unanswered", v.Unanswered, "questions without an answer: packets were lost, or members are gone"),
		counted("strangers", v.Strangers, "messages of nodes that are no members"),
		bad("excess", v.Excess, "messages dropped because a member sent too many"),
		counted("lost", v.Lost, "messages not sent because too many were waiting"),
	)
}

func floodTraffic(f flood.Stats) api.Traffic {
	return counters("flood",
		counted("started", int64(f.Originated), "floods of jobs that were submitted here"),
		counted("copies sent", int64(f.Sent), "of these floods, by this node"),
		counted("extensions", int64(f.Extended), "of these copies, sent beyond the rim of an earlier flood"),
		counted("copies received", int64(f.Received), "of all floods"),
		counted("delivered", int64(f.Delivered), "floods that came here for the first time"),
		counted("copies forwarded", int64(f.Forwarded), "of floods of others"),
		counted("duplicates", int64(f.Duplicates), "copies of what had come before: floods run in circles"),
		bad("malformed", int64(f.Malformed), "copies of wrong form, or passed on in another's name"),
		bad("refused", int64(f.Refused), "floods that their origin has not signed"),
		counted("limited", int64(f.Limited), "floods beyond what one node may send"),
		counted("expired", int64(f.Expired), "copies that came too late to be of use"),
		bad("cut", int64(f.Cut), "copies that wanted to travel farther than a flood may"),
		counted("dropped", int64(f.Dropped), "copies not looked at because too many were waiting"),
	)
}

func earlyTraffic(e fastrpc.Stats) api.Traffic {
	return counters("early",
		counted("requests sent", e.Sent, "as packets, ahead of a connection"),
		counted("requests answered", e.Answered, "of these, before there was a connection"),
		counted("requests received", e.Received, "of others, as packets"),
		counted("left", e.Left, "packets of requests that had come before, or are left to the connection"),
		counted("late", e.Late, "packets sealed with a key that is forgotten, or of nodes that are no members"),
		bad("malformed", e.Malformed, "packets of wrong form"),
		bad("forged", e.Forged, "packets that are not by the node that they are said to be from, or not for this one"),
	)
}

func uplinkTraffic(u uplink.Stats) api.Traffic {
	return counters("uplink",
		counted("bytes sent", u.Sent, "of files and streams, to other nodes"),
		counted("bytes a second at most", u.Limit, "its owner's upload-limit; 0: none"),
		counted("number of waiting", int64(u.Waiting), "files and streams that wait for their turn"),
	)
}

func requestsTraffic(c portion.Counts) api.Traffic {
	return counters("requests",
		bad("refused", c.Refused, "requests of members with too many at a time, or with bodies that are too large or of unknown length"),
		counted("late", c.Late, "requests whose body was not there within half a minute"),
	)
}

func jobsTraffic(c jobs.Counts) api.Traffic {
	return counters("jobs",
		bad("malformed", c.Malformed, "answers and requests of wrong form"),
		bad("refused", c.Refused, "requests that the sender had no right to"),
		bad("forged", c.Forged, "answers that are not signed by the node that they are said to be from"),
	)
}

// gossipTraffic tells the counters of the overlay, of which stats has the
// values by name.
func gossipTraffic(stats map[string]int64, unknown int64) api.Traffic {
	t := counters("gossip",
		counted("packets sent", 0, "to members, by this node's parts"),
		counted("packets received", 0, "the same of others"),
		counted("joins", 0, "times that this node has joined others"),
		counted("pings sent again", 0, "to members that did not answer at once"),
		counted("newcomers unanswered", 0, "times that a node that others announced did not answer: it does not become a member"),
		counted("beacons received", 0, "nodes of this network calling on the local network"),
		counted("joins failed", 0, "addresses where no node of this network answered"),
		bad("packets refused", 0, "packets of another network, or damaged: they do not decrypt"),
		bad("packets malformed", 0, "packets of members that are of wrong form"),
		bad("strangers refused", 0, "connections with nodes of other networks"),
		bad("handshakes failed", 0, "connections that said what no node says"),
		bad("connections over the limit", 0, "connections dropped, the oldest first, because too many had not proven who they are"),
		bad("handshakes put off", 0, "connections of clients that did not prove to be members, beyond 20 a second"),
		bad("connections too many", 0, "connections of members that had too many here: the newest are closed"),
		counted("connections silent", 0, "connections that said nothing for a second"),
		counted("connections broken", 0, "connections that ended before they had proven who they are"),
		bad("members malformed", 0, "members that describe themselves wrongly"),
		counted("beacons of other networks", 0, "nodes of other networks calling on the local network"),
		bad("beacons malformed", 0, "beacons of wrong form, or forged"),
	)
	for i := range t {
		t[i].Value = stats[t[i].Name]
	}
	return append(t, counters("gossip", bad("packets of unknown kinds", unknown, "packets of a newer version"))...)
}

// counters puts counters into a group.
func counters(group string, list ...api.Counter) api.Traffic {
	for i := range list {
		list[i].Group = group
	}
	return list
}

func counted(name string, value int64, help string) api.Counter {
	return api.Counter{Name: name, Value: value, Help: help}
}

// bad counts what nobody should send.
func bad(name string, value int64, help string) api.Counter {
	return api.Counter{Name: name, Value: value, Bad: true, Help: help}
}
