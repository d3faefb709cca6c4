// Package web is the status page of a node: what the node is, whom it knows
// and how far they are, its jobs, and for one job its workers, its floods, why
// it waits and its output as it comes. Who opened it with the
// owner's token may submit and end jobs, submit them again, and pause or drain the node.
//
// # How a page lives
//
// A view (views, in view.go and job.go) turns what api.Service tells into bounded
// lists of ready texts, classes and numbers. The same view goes two ways: the
// templates in content/templates write it as HTML for the first paint, and a
// stream of server-sent events sends it as JSON whenever it has changed. In the
// browser content/assets/bind.js puts the JSON into the elements that carry
// data-bind and data-each, so every piece of markup exists once. Texts are set
// as text only; the page never parses HTML from data, and its content security
// policy forbids it (trusted types).
//
//	GET /                   the node, its members, its jobs (?token=… signs in; ?q=TEXT&state=S
//	                        searches them, ?active=N&ended=N is a page of them)
//	GET /events             event "view": overview as JSON, of the same jobs
//	GET /timeline           who ran where in the last hour
//	GET /nodes/ID           one member
//	GET /nodes/ID/events    event "view": node as JSON
//	GET /jobs/ID            one job (ID as in api.Service)
//	GET /jobs/ID/events     event "view": job as JSON; event "end" after the last one
//	GET /jobs/ID/output     event "start", events "output", event "end"; ?rank=N&stream=stderr for some of it
//	GET /jobs/ID/log        its output so far, to be saved; ?rank=N&stream=stderr
//	GET /jobs/ID/files/RANK/PATH  an output file, always to be saved
//	POST /jobs              a form as package form reads it
//	POST /jobs/ID/cancel, rerun, rerun-failed; /node/pause, resume, drain, undrain
//	GET /assets/…           style sheet, scripts, icon
//
// Streams send at most five updates a second. A quiet one refreshes itself
// every few seconds and sends a comment if nothing is new, so that a client
// that went away is noticed. Output is made plain before it is sent (escape
// sequences, other control characters and broken UTF-8 are taken out) and what
// a browser cannot take fast enough is left out from the front, with a note: a
// slow page never slows a job.
//
// How busy members are comes with what they tell when they are asked, with the last hour as
// they remember it (package usage); network.go adds that up and draws it.
//
// Output files are sent as their origin keeps them, chunk by chunk and verified: one that
// turns out to be damaged breaks off. Whatever they are called and hold, they come as an
// attachment of no type. Values of a job's environment that look secret are not told.
//
// # The map
//
// atlas.go places the members: their network coordinates, laid flat, turned to
// where they were the last time and moved apart until no dot hides another. It
// is drawn anew at most every two seconds, and only if something has moved.
// draw.go adds the links that are known, the load, and the clusters; ripple.go
// draws a job's floods on the same map, as rings that CSS sets in motion. The
// load and links of others are known while an overview is open: its stream has
// the service ask the nearest members every 5 seconds (Survey).
//
// # Who may look
//
// A request must name the listener's own address in its Host header, or localhost with any
// port, since it may have come through a tunnel (a page
// elsewhere cannot reach it by rebinding a name), must not come from another
// origin, and must carry the token of Config: once as /?token=…, which sets a
// cookie, then as that cookie. Assets need no token; they are the same in every
// node.
//
// There are two tokens: the owner's, and one made of it that only shows (ReadOnly). What
// changes something (act.go) comes with POST, and needs more than the cookie, which browsers
// send to every port of a host: the key of a session, handed out once with the owner's token
// and kept by the page's scripts in the storage of their origin. No form of another page can
// send it, none of another port can read it, and readers have none.
//
// So a program at another port of 127.0.0.1 that the owner opens in the same browser can look,
// and do nothing. The address of the page is no name below localhost, though a browser would keep
// its cookie from all others: Safari, wget and most programs ask name servers for such names, which
// may lead the token anywhere. An address of its own in 127.0.0.0/8 (--web) has the same effect and asks nobody; it is not
// the default, since what forwards ports of another machine or of WSL knows 127.0.0.1 alone.
//
// # Concurrency
//
// A Handler may serve any number of requests at once and starts nothing itself.
// A stream ends with its request's context; a server that shuts down should
// cancel its base context, else it waits for open pages.
package web
