package location

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/primary"
	"antipode/services/catalog"
)

// What becomes of writes follows from the account's policy and the age of its oldest change: no policy holds a write
// before half of the target, and only refuse stops one, past the target.
func TestHold(t *testing.T) {
	const target = 100 * time.Second
	for _, c := range []struct {
		policy catalog.WhenLate
		age    time.Duration
		want   *primary.Late
	}{
		{catalog.LateAlert, time.Hour, nil},
		{catalog.LateSlow, 0, nil},
		{catalog.LateSlow, 50 * time.Second, nil},
		{catalog.LateSlow, 75 * time.Second, &primary.Late{Delay: 500 * time.Millisecond}},
		{catalog.LateSlow, target, &primary.Late{Delay: time.Second}},
		{catalog.LateSlow, time.Hour, &primary.Late{Delay: slowMax}},
		{catalog.LateRefuse, target, nil},
		{catalog.LateRefuse, target + 1, &primary.Late{Refuse: true}},
	} {
		held := map[primary.Written]primary.Late{}
		hold(held, &catalog.Account{Name: "acct", WhenLate: c.policy}, geo.Blob, c.age, target)
		if c.want == nil {
			require.Empty(t, held, "%s after %s", c.policy, c.age)
			continue
		}
		require.Equal(t, map[primary.Written]primary.Late{{Account: "acct", Service: geo.Blob}: *c.want}, held, "%s after %s", c.policy, c.age)
	}
	// A service has the delay of its range with the oldest change.
	held := map[primary.Written]primary.Late{}
	for _, age := range []time.Duration{75 * time.Second, target, 75 * time.Second} {
		hold(held, &catalog.Account{Name: "acct", WhenLate: catalog.LateSlow}, geo.Blob, age, target)
	}
	require.Equal(t, time.Second, held[primary.Written{Account: "acct", Service: geo.Blob}].Delay)
}
