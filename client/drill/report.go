package drill

import (
	"maps"
	"slices"
	"time"

	"antipode/client/admin"
)

// Kind is a kind of request.
type Kind string

// The kinds.
const (
	Writes         Kind = "writes"
	PrimaryReads   Kind = "reads of the primary name"
	SecondaryReads Kind = "reads of -secondary"
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{Writes, PrimaryReads, SecondaryReads} }

// Report is what a drill measured. Times are from its beginning.
type Report struct {
	// Account, Started and Verify are for the caller to fill in: Started is when the drill began by the caller's clock, Verify
	// the outcome of a comparison of both copies.
	Account string     `json:"account"`
	Started admin.Time `json:"started,omitzero"`
	Verify  string     `json:"verify,omitempty"`

	Took  time.Duration `json:"took_ns"`
	Moves []Span        `json:"moves"`
	Seen  []Seen        `json:"seen"`
	// NeitherRead is the longest time in which no read of either name succeeded.
	NeitherRead time.Duration `json:"neither_read_ns"`
	// Lost is how many acknowledged writes are gone, and LostWrites are these, by the time of their acknowledgement. Checked
	// is set once all rows were read for that, at the end.
	Lost       int         `json:"lost"`
	LostWrites []LostWrite `json:"lost_writes"`
	Checked    bool        `json:"checked"`
	// Unplanned is about the unplanned failover of the drill; absent if it had none.
	Unplanned *Unplanned `json:"unplanned,omitempty"`
	// Errors are what failed requests were answered, and how often.
	Errors []Failure `json:"errors"`
	// Line are the requests in parts of the time, for a picture.
	Line []Part `json:"line"`
}

// Span is a move.
type Span struct {
	Name string        `json:"name"`
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`
	// Failed is why it failed, empty if it did not.
	Failed string `json:"failed,omitempty"`
	// Stood is the longest time without a success of each kind that overlaps with the move.
	Stood map[Kind]time.Duration `json:"stood_ns"`
}

// Took is how long the move took.
func (s Span) Took() time.Duration { return s.To - s.From }

// Seen is what clients saw of one kind of request.
type Seen struct {
	Kind   Kind          `json:"kind"`
	Done   int           `json:"done"`
	Failed int           `json:"failed"`
	P50    time.Duration `json:"p50_ns"`
	P99    time.Duration `json:"p99_ns"`
	Most   time.Duration `json:"most_ns"`
	// Stood is the longest time without a success.
	Stood time.Duration `json:"stood_ns"`
}

// Failure is an answer of failed requests.
type Failure struct {
	Kind Kind   `json:"kind"`
	Says string `json:"says"`
	N    int    `json:"n"`
}

// Part is a part of the time, with how many requests of each kind ended in it.
type Part struct {
	From   time.Duration `json:"from_ns"`
	Done   map[Kind]int  `json:"done"`
	Failed map[Kind]int  `json:"failed"`
}

// parts is how many parts a line has.
const parts = 240

// gap is a time without a success.
type gap struct{ from, to time.Duration }

// fill computes a report from the requests.
func (d *drill) fill(r *Report) {
	r.Took = d.since()
	r.Seen, r.Errors, r.Line = []Seen{}, []Failure{}, make([]Part, parts)
	for i := range r.Line {
		r.Line[i] = Part{From: r.Took * time.Duration(i) / parts, Done: map[Kind]int{}, Failed: map[Kind]int{}}
	}
	gaps := map[Kind][]gap{}
	failures := map[Failure]int{}
	for _, k := range Kinds() {
		s := Seen{Kind: k}
		var took []time.Duration
		for _, q := range d.requests {
			if q.kind != k {
				continue
			}
			at := &r.Line[min(parts-1, int(q.to*parts/max(r.Took, 1)))]
			if q.failed != "" {
				s.Failed++
				at.Failed[k]++
				failures[Failure{Kind: k, Says: q.failed}]++
				continue
			}
			s.Done++
			at.Done[k]++
			took = append(took, q.to-q.from)
		}
		slices.Sort(took)
		s.P50, s.P99, s.Most = quantile(took, .5), quantile(took, .99), quantile(took, 1)
		gaps[k] = d.gaps(k, r.Took)
		s.Stood = longest(gaps[k], 0, r.Took)
		r.Seen = append(r.Seen, s)
	}
	for i := range r.Moves {
		m := &r.Moves[i]
		m.Stood = map[Kind]time.Duration{}
		for _, k := range Kinds() {
			m.Stood[k] = longest(gaps[k], m.From, m.To)
		}
	}
	r.NeitherRead = both(gaps[PrimaryReads], gaps[SecondaryReads])
	for _, f := range slices.SortedFunc(maps.Keys(failures), func(a, b Failure) int { return failures[b] - failures[a] }) {
		f.N = failures[f]
		r.Errors = append(r.Errors, f)
	}
}

// gaps are the times without a success of a kind, from the beginning to the end.
func (d *drill) gaps(k Kind, end time.Duration) (out []gap) {
	last := time.Duration(0)
	for _, q := range d.requests {
		if q.kind == k && q.failed == "" {
			out = append(out, gap{last, q.to})
			last = q.to
		}
	}
	return append(out, gap{last, max(last, end)})
}

// longest is the longest of the gaps that overlap with a time.
func longest(gaps []gap, from, to time.Duration) (most time.Duration) {
	for _, g := range gaps {
		if g.to >= from && g.from <= to {
			most = max(most, g.to-g.from)
		}
	}
	return most
}

// both is the longest time that is in a gap of either list. Gaps between successes always overlap a little: of two
// readers that nothing disturbs, by the pause between two requests.
func both(a, b []gap) (most time.Duration) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		most = max(most, min(a[i].to, b[j].to)-max(a[i].from, b[j].from))
		if a[i].to < b[j].to {
			i++
		} else {
			j++
		}
	}
	return most
}

// quantile is that of sorted times, 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
