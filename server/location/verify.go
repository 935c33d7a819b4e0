package location

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/verify"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// Bounds of comparisons.
const (
	// verifiesMax is how many comparisons run in a process at once.
	verifiesMax = 2
	// verifiesKept is how many that have ended are kept. The oldest goes first.
	verifiesKept = 32
)

// verifying compares accounts whose primary is this location, and answers the other location's
// questions about those whose secondary it is.
type verifying struct {
	l *Location
	// near answers this process about snapshots of any replica that runs here, far the other location
	// about those of leaders.
	near, far *verify.Sessions

	mu   sync.Mutex
	jobs []*verifyJob
}

// verifyJob is a comparison of an account.
type verifyJob struct {
	a      *catalog.Account
	remote *verify.Remote

	mu  sync.Mutex
	out wire.Verify
	// keys are the rows of out.Differences.
	keys [][]byte
	// away is the error of the last call to the other location, nil if that answered.
	away error
}

func newVerifying(l *Location) *verifying {
	v := &verifying{l: l}
	o := verify.Options{Stamp: leaderSnapshots{l}, Clock: l.o.Clock, RowChunks: blobs.RowChunks}
	v.far = verify.NewSessions(o)
	o.Stamp = anySnapshots{l}
	v.near = verify.NewSessions(o)
	return v
}

// end ends all sessions: the snapshots of a node that stops must be closed.
func (v *verifying) end(*node.Node) {
	if err := errors.Join(v.near.Close(), v.far.Close()); err != nil {
		v.l.o.Logger.Warn("end the comparisons of a node that stops", "location", v.l.o.Name, "error", err)
	}
}

// leaderSnapshots implements verify.Stamp with the leaders that run in this process.
type leaderSnapshots struct{ l *Location }

// Snapshot implements verify.Stamp.
func (s leaderSnapshots) Snapshot(ctx context.Context, r geo.RangeID) (kv.Snapshot, verify.Chunks, error) {
	stamp, err := s.l.Stamp()
	if err != nil {
		return nil, nil, err
	}
	for _, id := range stamp.Nodes() {
		n := stamp.Node(id)
		if n == nil {
			continue
		}
		if lead := n.Range(r); lead != nil && lead.Leading() {
			snap, err := ranges.Snapshot(ctx, leaderReader{lead}, r)
			return snap, examinedChunks{n.Extents(), stamp}, err
		}
	}
	return nil, nil, ranges.ErrNotLeader
}

// leaderReader implements ranges.Reader with one leader.
type leaderReader struct{ r *ranges.Range }

func (l leaderReader) Read(ctx context.Context, _ geo.RangeID, f func(ranges.State) error) error {
	return l.r.Read(ctx, f)
}

// anySnapshots implements verify.Stamp with any replica that runs in this process, after a round
// through its leader. It has no payload: the primary's is not examined.
type anySnapshots struct{ l *Location }

// Snapshot implements verify.Stamp.
func (s anySnapshots) Snapshot(ctx context.Context, r geo.RangeID) (kv.Snapshot, verify.Chunks, error) {
	snap, err := ranges.Snapshot(ctx, s.l, r)
	return snap, nil, err
}

// Verify implements link.Stamp.
func (l *Location) Verify(ctx context.Context, r geo.RangeID, question []byte) ([]byte, error) {
	if !l.verifying.far.Holds(question) && l.Leader(r) == nil {
		return nil, ranges.ErrNotLeader
	}
	return l.verifying.far.Serve(ctx, r, question)
}

// StartVerify begins to compare both copies of an account whose primary is this location. If a
// comparison of the account runs it returns that one.
func (l *Location) StartVerify(ctx context.Context, name geo.Account, q wire.VerifyQuery) (wire.Verify, error) {
	stamp, err := l.Stamp()
	if err != nil {
		return wire.Verify{}, err
	}
	a, err := l.Directory.Account(ctx, name)
	if err == nil {
		err = mayVerify(a, q, l.o.Name)
	}
	if err != nil {
		return wire.Verify{}, err
	}
	j, begin, err := l.verifying.add(a, q)
	if err != nil {
		return wire.Verify{}, err
	}
	if begin {
		stamp.Go(func(ctx context.Context) { l.verifying.run(ctx, j) })
	}
	return j.describe(), nil
}

// mayVerify refuses to compare an account at a location.
func mayVerify(a *catalog.Account, q wire.VerifyQuery, here geo.Location) error {
	switch {
	case a.Primary != here:
		return refusal(wire.CodeAskPrimary, "the primary location of the account compares: ask an admin port of "+string(a.Primary))
	case a.Secondary == "":
		return refusal(wire.CodeNoSecondary, fmt.Sprintf("account %s is %s: it has one copy, and nothing to compare it with", a.Name, a.Redundancy))
	case a.Bootstraps():
		return refusal(wire.CodeBusy, fmt.Sprintf("account %s is not compared before its copy is complete", a.Name))
	case a.Unsure(): // They differ, and are going to be made equal.
		return refusal(wire.CodeBusy, fmt.Sprintf("account %s is not compared before its former primary %s follows; under way is %s",
			a.Name, a.Secondary, a.Operation.Describe()))
	case q.Repair && a.Operation != nil:
		return refusal(wire.CodeBusy, fmt.Sprintf("account %s is not repaired while its operation %s is under way", a.Name, a.Operation.Kind))
	}
	return nil
}

func refusal(code, message string) error {
	return &wire.Error{Status: http.StatusConflict, Code: code, Message: message}
}

// Verified returns the last comparison of an account.
func (l *Location) Verified(name geo.Account) (wire.Verify, error) {
	v := l.verifying
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, j := range slices.Backward(v.jobs) {
		if j.a.Name == name {
			return j.describe(), nil
		}
	}
	return wire.Verify{}, &wire.Error{
		Status: http.StatusNotFound, Code: wire.CodeNoVerify,
		Message: fmt.Sprintf("this process has not compared account %q since it started: antipodectl verify does", name),
	}
}

// add adds a comparison, or returns the one of the account that runs.
func (v *verifying) add(a *catalog.Account, q wire.VerifyQuery) (j *verifyJob, begin bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	running := 0
	for _, j := range v.jobs {
		if j.describe().State != wire.VerifyRunning {
			continue
		}
		if j.a.Name == a.Name {
			if q.Repair && !j.out.Repair {
				return nil, false, refusal(wire.CodeBusy, fmt.Sprintf("a comparison of account %s runs that repairs nothing: wait for its end", a.Name))
			}
			return j, false, nil
		}
		running++
	}
	if running >= verifiesMax {
		return nil, false, refusal(wire.CodeBusy, fmt.Sprintf("%d other comparisons run in this process: wait for one to end", running))
	}
	j = &verifyJob{a: a, out: wire.Verify{
		Account: a.Name, Primary: a.Primary, Secondary: a.Secondary, VerifyQuery: q, State: wire.VerifyRunning, Started: wire.Time{Time: v.l.o.Clock.Now()},
	}}
	j.remote = &verify.Remote{Call: func(ctx context.Context, r geo.RangeID, question []byte) ([]byte, error) {
		answer, err := v.l.far.Verify(ctx, r, question)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.away = err
		return answer, err
	}}
	if q.Repair {
		j.out.Repaired = &wire.VerifyRepair{}
	}
	for _, d := range v.l.o.Route.Ranges() {
		if s := d.Service.String(); d.Service == geo.Catalog || q.Service == "" || q.Service == s {
			j.out.Ranges = append(j.out.Ranges, wire.VerifiedRange{Range: d.ID, Service: s, Lanes: geo.LaneCount})
		}
	}
	if v.jobs = append(v.jobs, j); len(v.jobs) > verifiesKept {
		v.jobs = v.jobs[1:]
	}
	return j, true, nil
}

// run compares all ranges of a comparison, one after the other.
func (v *verifying) run(ctx context.Context, j *verifyJob) {
	for i := range j.describe().Ranges {
		if j.skip(i) {
			continue
		}
		if j.out.Repair {
			v.repair(ctx, j, i)
			continue
		}
		found, err := verify.Run(ctx, v.comparison(j, i))
		j.take(i, found, err)
		j.done(i, found)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.out.State, j.out.Ended, j.out.Outcome = wire.VerifyDone, wire.Time{Time: v.l.o.Clock.Now()}, j.outcome()
}

// skip leaves a range out, and reports that, if the other location is away: nothing of the range before could be compared, and
// the last call failed. To try each range in turn would take as long for each.
func (j *verifyJob) skip(i int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i == 0 || j.away == nil || j.out.Ranges[i-1].Compared > 0 {
		return false
	}
	j.out.Ranges[i].Done, j.out.Ranges[i].NotCompared = true, slices.Clone(j.out.Ranges[i-1].NotCompared)
	return true
}

// outcome words the result of a comparison that has ended. The caller holds mu.
func (j *verifyJob) outcome() string {
	differ := j.out.DifferencesTotal
	if j.out.Repaired != nil {
		differ = j.out.Repaired.Remaining
	}
	whole := !slices.ContainsFunc(j.out.Ranges, func(r wire.VerifiedRange) bool { return r.Compared < r.Lanes })
	switch {
	case differ > 0:
		return wire.VerifyDifferent
	case !whole:
		return wire.VerifyIncomplete
	case j.out.DifferencesTotal > 0:
		return wire.VerifyRepaired
	}
	return wire.VerifyEqual
}

// comparison is what is compared of a range.
func (v *verifying) comparison(j *verifyJob, i int) verify.Comparison {
	r := j.describe().Ranges[i]
	service, _ := geo.ParseService(r.Service) // It is one of the table of ranges.
	payload := verify.PayloadPresent
	if j.out.Payload {
		payload = verify.PayloadRead
	}
	return verify.Comparison{
		Account: j.a.Name, Epoch: j.a.GeoEpoch(), Range: r.Range, Near: v.near, Far: j.remote, Payload: payload, BytesPerSecond: j.out.BytesPerSecond,
		Prefixes: func(ctx context.Context) ([][]byte, error) { return v.prefixes(ctx, j.a.Name, service, j.out.Service) },
		Progress: func(p verify.Progress) {
			j.mu.Lock()
			defer j.mu.Unlock()
			r := &j.out.Ranges[i]
			r.Round, r.Compared, r.BytesRead = p.Round, p.Compared, p.Bytes
		},
	}
}

// prefixes are those of the rows that are compared: in the catalog the containers of the services; in a
// service the generations that the catalog names now. The account's own row of the catalog is each
// location's own. only names the service whose containers are compared, empty for all.
func (v *verifying) prefixes(ctx context.Context, a geo.Account, s geo.Service, only string) (out [][]byte, err error) {
	if s == geo.Catalog {
		for _, of := range geo.Services {
			if only == "" || only == of.String() {
				out = append(out, catalog.ContainersPrefix(of, a))
			}
		}
		slices.SortFunc(out, slices.Compare)
		return out, nil
	}
	snap, err := ranges.Snapshot(ctx, v.l, v.l.o.Route.Catalog())
	if err != nil {
		return nil, err
	}
	properties := catalog.PropertiesKey(s, a)
	err = keys.Each(snap, catalog.ContainersPrefix(s, a), func(key, value []byte) error {
		if bytes.Equal(key, properties) {
			return nil // It has no container.
		}
		c, err := catalog.ParseContainer(value)
		if err == nil && c.Deleted == 0 {
			out = append(out, c.Prefix(s, a))
		}
		return err
	})
	slices.SortFunc(out, slices.Compare)
	return out, errors.Join(err, snap.Close())
}

// describe returns the comparison as it is now.
func (j *verifyJob) describe() wire.Verify {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.out
	out.Ranges, out.Differences = slices.Clone(out.Ranges), slices.Clone(out.Differences)
	out.BytesCrossed = j.remote.Crossed()
	return out
}

// take adds what a comparison found in a range. After a repair the range is compared again: then rows that
// were listed before are not listed twice. err is that of a stamp that stops.
func (j *verifyJob) take(i int, found verify.Result, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &j.out.Ranges[i]
	r.Compared, r.Rows, r.Bytes, r.Chunks, r.ChunkBytes = found.Compared, found.Rows, found.Bytes, found.Chunks, found.ChunkBytes
	r.NotCompared = nil
	for _, u := range found.Uncompared {
		r.NotCompared = append(r.NotCompared, wire.LaneNotCompared{Lane: u.Lane, Reason: u.Reason})
	}
	if err != nil {
		r.NotCompared = append(r.NotCompared, wire.LaneNotCompared{Reason: "the comparison ended early, in every lane that is not compared: " + err.Error()})
	}
	listed := map[string]bool{}
	for _, key := range j.keys {
		listed[string(key)] = true
	}
	for _, d := range found.Differences {
		if len(j.keys) == wire.VerifyDifferencesMax {
			return
		}
		if !listed[string(d.Key)] {
			j.out.Differences, j.keys = append(j.out.Differences, describeDifference(d)), append(j.keys, d.Key)
		}
	}
}

// done ends a range whose differences, all in all, are those of found.
func (j *verifyJob) done(i int, found verify.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.out.Ranges[i].Done = true
	j.out.DifferencesTotal += found.Total
	j.out.AtLeast = j.out.AtLeast || found.AtLeast
}
