package membership

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/replica"
)

// Which replica a range is re-formed from.
func TestSurvivor(t *testing.T) {
	first := replica.FirstMembers([]geo.NodeID{1, 2, 3})
	once, err := replica.Recovery(0).Next(1)
	require.NoError(t, err)
	of := func(n geo.NodeID, trusted bool, term, index uint64) Survey {
		return Survey{Node: n, Replica: replica.FirstID(n), Trusted: trusted, Term: term, Index: index, Members: first}
	}
	reformed := func(n geo.NodeID, trusted bool, index uint64) Survey {
		return Survey{Node: n, Replica: once.None() + geo.ReplicaID(n), Trusted: trusted, Term: 2, Index: index, Members: once.Members()}
	}
	gone := Survey{Node: 2, Replica: once.None(), Term: 9, Index: 90, Members: first}
	recovering := reformed(1, false, 20)
	recovering.Recovering = true
	second, err := once.Next(2)
	require.NoError(t, err)
	twice := Survey{Node: 2, Replica: second.Members().List[0].ID, Trusted: true, Term: 3, Index: 10, Members: second.Members()}
	for name, c := range map[string]struct {
		all       []Survey
		untrusted bool
		want      geo.NodeID
		err       error
	}{
		"the only one":                           {all: []Survey{of(3, true, 5, 10)}, want: 3},
		"two of three are a quorum":              {all: []Survey{of(1, true, 5, 10), of(3, true, 5, 10)}, err: ErrQuorum, untrusted: true},
		"a lost one is none of it":               {all: []Survey{of(1, true, 5, 10), of(2, false, 7, 99)}, want: 1, untrusted: true},
		"lost ones only":                         {all: []Survey{of(1, false, 5, 10), of(2, false, 4, 99)}, err: ErrNoSurvivor},
		"the lost one of the highest term":       {all: []Survey{of(1, false, 5, 10), of(2, false, 4, 99)}, want: 1, untrusted: true},
		"the lost one of the highest index":      {all: []Survey{of(1, false, 5, 10), of(2, false, 5, 99)}, want: 2, untrusted: true},
		"of equal ones that of the lowest node":  {all: []Survey{of(3, false, 5, 10), of(1, false, 5, 10), of(2, false, 5, 10)}, want: 1, untrusted: true},
		"an empty one is none":                   {all: []Survey{of(1, false, 0, 0)}, err: ErrNoSurvivor, untrusted: true},
		"a leader that lost the others":          {all: []Survey{{Node: 1, Replica: 1, Trusted: true, Leads: true, Term: 5, Index: 10, Members: first}}, err: ErrQuorum},
		"one that follows a leader":              {all: []Survey{{Node: 1, Replica: 1, Trusted: true, Follows: true, Term: 5, Index: 10, Members: first}}, err: ErrQuorum},
		"nobody":                                 {err: ErrNoSurvivor, untrusted: true},
		"one that re-forms the range":            {all: []Survey{recovering, of(3, false, 5, 30)}, err: ErrChanged, untrusted: true},
		"one that re-formed it, and is retired":  {all: []Survey{recovering, twice}, err: ErrQuorum},
		"a survivor of before is a quorum":       {all: []Survey{reformed(1, true, 20), of(2, true, 5, 30), of(3, true, 5, 30)}, err: ErrQuorum},
		"retired ones are not trusted":           {all: []Survey{gone, of(3, true, 5, 30)}, err: ErrNoSurvivor},
		"data of the later recovery comes first": {all: []Survey{reformed(1, false, 20), gone, of(3, true, 5, 30)}, want: 1, untrusted: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, as, err := Survivor(c.all, c.untrusted)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.want, got.Node)
			for _, v := range c.all {
				require.True(t, err != nil || as > replica.RecoveryOf(v.Replica), "a later recovery")
			}
		})
	}
}

// R4: a range is re-formed only from the replica that the survey showed, while that knows of no leader, and soon: not
// after a pause of its process, which may hide one. A survey of a version without times has no age.
func TestMayReform(t *testing.T) {
	once, err := replica.Recovery(0).Next(1)
	require.NoError(t, err)
	const patience = time.Second
	at := Survey{Node: 1, Replica: 1, Trusted: true, Term: 5, Index: 10, Taken: time.Hour, Ran: time.Minute}
	for name, c := range map[string]struct {
		change func(from, now *Survey)
		ours   replica.Recovery
		ok     bool
	}{
		"at once":             {func(*Survey, *Survey) {}, 0, true},
		"it has more now":     {func(_, now *Survey) { now.Index++ }, 0, true},
		"in time":             {func(_, now *Survey) { now.Taken, now.Ran = now.Taken+ReformWithin, now.Ran+ReformWithin }, 0, true},
		"a short pause":       {func(_, now *Survey) { now.Taken += patience }, 0, true},
		"a pause":             {func(_, now *Survey) { now.Taken += patience + 1 }, 0, false},
		"late":                {func(_, now *Survey) { now.Taken, now.Ran = now.Taken+ReformWithin+1, now.Ran+ReformWithin+1 }, 0, false},
		"the machine booted":  {func(_, now *Survey) { now.Taken, now.Ran = 1, 1 }, 0, false},
		"without times":       {func(from, _ *Survey) { from.Taken, from.Ran = 0, 0 }, 0, true},
		"it leads":            {func(_, now *Survey) { now.Leads = true }, 0, false},
		"it follows a leader": {func(_, now *Survey) { now.Follows = true }, 0, false},
		"it has less":         {func(_, now *Survey) { now.Index-- }, 0, false},
		"of a lower term":     {func(_, now *Survey) { now.Term-- }, 0, false},
		"another replica":     {func(_, now *Survey) { now.Replica++ }, 0, false},
		"it is lost":          {func(_, now *Survey) { now.Trusted = false }, 0, false},
		"it is in it":         {func(*Survey, *Survey) {}, once, false},
	} {
		t.Run(name, func(t *testing.T) {
			from, now := at, at
			c.change(&from, &now)
			err := MayReform(from, now, c.ours, once, patience)
			if c.ok {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, ErrChanged)
			}
		})
	}
}

// A survey between nodes of two versions keeps its names.
func TestSurveyOnTheWire(t *testing.T) {
	s := Survey{Node: 1, Replica: 2, Why: "lost", Term: 3, Index: 4, Commit: 5, Members: replica.FirstMembers([]geo.NodeID{1})}
	b, err := json.Marshal(s)
	require.NoError(t, err)
	require.Equal(t, `{"Node":1,"Replica":2,"Trusted":false,"Why":"lost","Leads":false,"Term":3,"Index":4,"Commit":5,`+
		`"Members":{"Next":2,"List":[{"ID":1,"Node":1,"Learner":false}]}}`, string(b))
	s.Trusted, s.Why = true, ""
	b, err = json.Marshal(s)
	require.NoError(t, err)
	require.NotContains(t, string(b), "Why")
}
