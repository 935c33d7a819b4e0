package flow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Calls to a primary whose range has no leader fail, at whichever node: the cause is the range, which an operator can do
// something about, and not the link. Where all ranges are led it is the link.
func TestWhyLeaderAtThePrimary(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	a := wire.Account{Name: "photos", Primary: "north", Secondary: "south"}
	var ranges []wire.RangeFlow
	var services []wire.ServiceStatus
	for i, s := range []string{"catalog", "blob", "queue", "table"} {
		ranges = append(ranges, wire.RangeFlow{
			Range: geo.RangeID(i + 1), Service: s, Leader: "south-1", Receiver: &wire.ReceiverFlow{Closed: wire.Time{Time: at.Add(-time.Minute)}},
		})
		if s != "catalog" {
			services = append(services, wire.ServiceStatus{Service: s, Status: wire.Live})
		}
	}
	south := wire.Flow{
		Location: "south", Account: a, At: wire.Time{Time: at}, Ranges: ranges, Services: services,
		Calls: &wire.Trouble{Error: "not the leader of the range", Seconds: 30},
	}
	for leader, stage := range map[string]string{"": wire.StageNotPublished, "north-1": wire.StageLink} {
		north := wire.Flow{Location: "north", Account: a, At: wire.Time{Time: at}}
		for _, r := range ranges {
			r.Leader, r.Receiver = leader, nil
			north.Ranges = append(north.Ranges, r)
		}
		for _, s := range Why("photos", wire.Flows{Flows: []wire.Flow{north, south}}, 0).Services {
			require.NotEmpty(t, s.Causes, s.Service)
			require.Equal(t, stage, s.Causes[0].Stage, s.Causes)
			if leader == "" {
				require.Equal(t, "the range has no leader at the primary", s.Causes[0].Detail)
				require.EqualValues(t, "north", s.Causes[0].Location)
			}
		}
	}
}

// A former primary that does not answer is named as what it is: the failover that it has not followed comes first.
func TestWhyFormerPrimaryThatIsAway(t *testing.T) {
	a := wire.Account{Name: "photos", Primary: "north", Secondary: "south", Operation: "the failover to this location"}
	for phase, want := range map[string][]string{
		"":                 {"the secondary could not be asked"},
		wire.FailoverTaken: {"the failover to this location", "the secondary could not be asked"},
	} {
		a.FailoverPhase = phase
		y := Why("photos", wire.Flows{Flows: []wire.Flow{{Location: "north", Account: a}}, Silent: []wire.SilentLocation{{Location: "south", Reason: "away"}}}, 0)
		for _, s := range y.Services {
			var details []string
			for _, c := range s.Causes {
				details = append(details, c.Detail)
			}
			require.Equal(t, want, details, s.Service)
		}
	}
}
