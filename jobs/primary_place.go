package jobs

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// The choice of nodes for jobs to which more matters than the distance from the
// origin: the round trips between their own nodes (--strategy compact,
// --max-rtt), or that copies of a rank are apart (--replicas). Whether offers
// are enough is known only by trying. Distances between two other nodes are
// estimated until a choice depends on them; then the nodes measure them.

// group is what is known for such a choice.
type group struct {
	rtt     map[pair]time.Duration // measured; maxApart = in vain
	waiting int                    // requests to measure that have not been answered
	until   time.Time              // for which is waited at most; zero = for nothing
	rounds  int                    // of measurements since the flood
	tried   int                    // offers at the last choice
	at      time.Time              // of that
	apart   string                 // why the offers do not do; "" = they do
}

// pair is two nodes, in order.
type pair struct{ a, b vicinity.ID }

func pairOf(a, b vicinity.ID) pair {
	if b < a {
		a, b = b, a
	}
	return pair{a, b}
}

const (
	// maxApart stands for a round trip that could not be measured.
	maxApart = 10 * time.Second
	// maxPairs bounds what is measured for a job: the rest, of the nearest
	// pairs by estimate, count by their estimates.
	maxPairs = 8192
	// maxMeasured bounds one request.
	maxMeasured = 256
	// measureTime bounds how long a node measures, measureWait how long its
	// answer is waited for.
	measureTime  = 300 * time.Millisecond
	measurePause = 10 * time.Millisecond
	measureWait  = 700 * time.Millisecond
	// measureRounds is how often a choice may change because of what was
	// measured.
	measureRounds = 6
	// placePause is between two vain choices while hardly anything changes.
	placePause = 250 * time.Millisecond
)

// doMeasure has a node measure the round trips to others for a job; paired
// takes what comes of it.
type doMeasure struct {
	from  vicinity.ID
	nodes []vicinity.ID
}

func (doMeasure) isEffect() {}

// grouped reports whether the job's nodes are chosen by considerGroup.
func (p *primary) grouped() bool { return p.rec.spec.pairwise() || p.rec.replicated() }

// wish is how so many ranks are to be placed.
func (p *primary) wish(ranks int) placement.Wish {
	spec := &p.rec.spec
	return placement.Wish{Strategy: placement.Strategy(spec.Strategy), Ranks: ranks, Replicas: spec.Replicas, MaxRTT: time.Duration(spec.MaxRTT)}
}

// considerGroup is consider for jobs whose nodes depend on each other.
func (p *primary) considerGroup(now time.Time, total int) (horizon time.Duration) {
	g := &p.group
	if p.tooSoon(now) {
		return p.horizon
	}
	offers := p.standing()
	g.tried, g.at = len(offers), now
	assign, err := p.place(offers, total)
	if err != nil {
		p.version++
		if g.apart = err.Error(); p.mayExtend(now) {
			p.settle = p.extended(now)
		}
		return anywhere
	}
	g.apart = ""
	worst := time.Duration(0)
	for _, i := range assign {
		worst = max(worst, offers[i].RTT)
	}
	p.frontier.Refresh(p.measured)
	if p.horizon = p.groupHorizon(offers, assign, worst); p.horizon < anywhere && !p.open(now) {
		p.meet()
	}
	if p.mayExtend(now) {
		g.tried = 0 // the next choice is another one
		if p.horizon == anywhere {
			g.tried = len(offers)
		}
		p.settle = p.extended(now)
		return p.horizon
	}
	if p.measure(now) {
		p.asked = now
	}
	if at := later(later(p.flooded, p.frontier.Sent()), p.asked).Add(min(2*worst, maxSettle)); now.Before(at) {
		g.tried = 0
		p.settle = at
		return 0
	}
	if p.measurePairs(now, p.chosen(offers, assign)) {
		g.tried = 0
		p.settle = g.until
		p.keep = later(p.keep, g.until.Add(keepOffers))
		return 0
	}
	if g.apart != "" {
		return 0
	}
	p.grantAll(now, p.wantedRanks(len(assign)), offers, assign)
	if p.wanted() == 0 {
		return 0
	}
	return anywhere
}

// tooSoon reports whether another choice has to wait, and sets when it is due,
// and p.horizon.
func (p *primary) tooSoon(now time.Time) bool {
	g := &p.group
	if now.Before(g.until) { // for what is being measured
		p.settle = g.until
		p.keep = later(p.keep, now.Add(keepOffers))
		return true
	}
	if at := g.at.Add(placePace(len(p.offers))); now.Before(at) {
		p.settle = at
		return true
	}
	p.horizon = anywhere
	few := len(p.offers)*4 < g.tried*5 // hardly more than at the last choice
	switch {
	case few && p.mayExtend(now):
		p.settle = p.extended(now)
		return true
	case few && g.apart != "" && now.Before(g.at.Add(placePause)):
		if len(p.offers) != g.tried {
			p.settle = g.at.Add(placePause)
		}
		return true
	}
	return false
}

// placePace returns how soon a choice among so many offers may follow another
// one: answers come by the hundred, and its cost grows with the square.
func placePace(offers int) time.Duration {
	return min(time.Duration(offers*offers)*time.Microsecond, placePause)
}

// groupHorizon says how far away more offers are welcome when there are enough.
func (p *primary) groupHorizon(offers []placement.Offer, assign []int, worst time.Duration) time.Duration {
	if len(assign) < p.wanted() || p.spreading() {
		return anywhere
	}
	if placement.Strategy(p.rec.spec.Strategy) != placement.Compact {
		return nearer(worst)
	}
	// Nodes that are nearer to each other may be anywhere. Four times as many
	// as are needed are choice enough, and nothing is nearer than a neighbour.
	nodes := p.chosen(offers, assign)
	_, _, rtt := placement.Worst(assign, p.apart(offers))
	if rtt <= time.Millisecond || len(offers) >= max(64, 4*len(nodes)) {
		return 0
	}
	return anywhere
}

// place chooses offers for as many wanted ranks as it can, all of a rigid job.
func (p *primary) place(offers []placement.Offer, total int) (assign []int, err error) {
	most := min(total, p.wanted())
	try := func(workers int) ([]int, error) {
		w := p.wish(workers / p.rec.spec.copies())
		w.Between = p.apart(offers)
		list, err := w.Place(offers)
		if err != nil {
			return nil, err
		}
		return slices.Concat(list...), nil
	}
	if assign, err = try(most); err == nil || !errors.Is(err, placement.ErrApart) || p.rec.spec.Rigid() {
		return assign, err
	}
	low := p.threshold() // the most that can be placed is looked for by halves
	if assign, err = try(low); err != nil {
		return nil, err
	}
	for high := most; high-low > 1; {
		mid := low + (high-low)/2
		if more, err := try(mid); err == nil {
			assign, low = more, mid
		} else {
			high = mid
		}
	}
	return assign, nil
}

// apart tells how far apart the nodes of offers are, and each from the nodes
// that the job has.
func (p *primary) apart(offers []placement.Offer) func(a, b int) time.Duration {
	have := p.nodes()
	return func(a, b int) (rtt time.Duration) {
		x := vicinity.ID(offers[a].Node)
		if a != b {
			rtt, _ = p.between(x, vicinity.ID(offers[b].Node))
			return rtt
		}
		for _, id := range have {
			d, _ := p.between(x, id)
			rtt = max(rtt, d)
		}
		return rtt
	}
}

// between is the round trip between two nodes; sure is false where it is
// estimated, too high where hardly anything is known.
func (p *primary) between(a, b vicinity.ID) (rtt time.Duration, sure bool) {
	if a == b {
		return 0, true
	}
	if b == p.self.ID {
		a, b = b, a
	}
	if a == p.self.ID {
		rtt = p.measured(b)
		return cmp.Or(rtt, p.far(b)), rtt > 0
	}
	if rtt, ok := p.group.rtt[pairOf(a, b)]; ok {
		return rtt, true
	}
	if rtt = p.distance(a, b); rtt > 0 {
		return rtt, false
	}
	return min(p.far(a)+p.far(b), maxApart), false
}

// far is the round trip from the origin as far as it is known.
func (p *primary) far(id vicinity.ID) time.Duration {
	if rtt := p.measured(id); rtt > 0 {
		return rtt
	}
	if a, ok := p.answers[id]; ok && a.RTT > 0 {
		return time.Duration(a.RTT)
	}
	return maxApart
}

// nodes lists the nodes that have ranks of the job.
func (p *primary) nodes() []vicinity.ID {
	seen := map[vicinity.ID]bool{}
	for i := range p.rec.ranks {
		switch k := &p.rec.ranks[i]; k.state {
		case WorkerPreparing, WorkerReady, WorkerRunning:
			seen[k.node] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// chosen lists the nodes that the job would have.
func (p *primary) chosen(offers []placement.Offer, assign []int) []vicinity.ID {
	list := p.nodes()
	for _, i := range slices.Compact(slices.Sorted(slices.Values(assign))) {
		if id := vicinity.ID(offers[i].Node); !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// measurePairs has the round trips between nodes measured that are not known,
// and reports whether it is worth to wait for them.
func (p *primary) measurePairs(now time.Time, nodes []vicinity.ID) bool {
	g := &p.group
	type unsure struct {
		pair
		rtt time.Duration
	}
	var list []unsure
	var probes []vicinity.ID
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			switch rtt, sure := p.between(a, b); {
			case sure:
			case a == p.self.ID:
				probes = append(probes, b)
			case b == p.self.ID:
				probes = append(probes, a)
			default:
				list = append(list, unsure{pairOf(a, b), rtt})
			}
		}
	}
	if len(list) == 0 && len(probes) == 0 || !p.rec.spec.pairwise() {
		return false
	}
	slices.SortFunc(list, func(x, y unsure) int {
		return cmp.Or(cmp.Compare(y.rtt, x.rtt), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	list = list[:min(len(list), max(0, maxPairs-len(g.rtt)))]
	if g.rounds >= measureRounds {
		if len(list)+len(probes) > 0 && p.rec.spec.MaxRTT > 0 {
			g.apart = "the round trips between nodes could not be measured"
			p.version++
		}
		return false
	}
	asks := map[vicinity.ID][]vicinity.ID{}
	for _, u := range list {
		from, to := u.a, u.b
		if len(asks[to]) < len(asks[from]) {
			from, to = to, from
		}
		if len(asks[from]) < maxMeasured {
			asks[from] = append(asks[from], to)
		}
	}
	if len(asks) == 0 && len(probes) == 0 {
		return false
	}
	g.rounds++
	g.waiting, g.until = len(asks), now.Add(measureWait)
	for _, from := range slices.Sorted(maps.Keys(asks)) {
		p.do(doMeasure{from, asks[from]})
	}
	for _, id := range probes {
		p.do(doProbe{id})
	}
	return true
}

// paired takes the round trips from one node to others, 0 where there is none;
// of a node that did not answer there are none at all.
func (p *primary) paired(now time.Time, from vicinity.ID, nodes []vicinity.ID, rtt []time.Duration) {
	g := &p.group
	if p.rec.state.Final() {
		return
	}
	if g.rtt == nil {
		g.rtt = map[pair]time.Duration{}
	}
	for i, id := range nodes {
		d := maxApart
		if i < len(rtt) && rtt[i] > 0 {
			d = min(rtt[i], maxApart)
		}
		g.rtt[pairOf(from, id)] = d
	}
	if g.waiting--; g.waiting <= 0 {
		g.until = time.Time{}
		p.pursue(now)
	}
}

// regroup begins the choice anew with a flood: what could not be measured may
// be tried again.
func (p *primary) regroup() {
	g := &p.group
	maps.DeleteFunc(g.rtt, func(_ pair, rtt time.Duration) bool { return rtt >= maxApart })
	*g = group{rtt: g.rtt, apart: g.apart}
}
