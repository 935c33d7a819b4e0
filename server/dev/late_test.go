package dev

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/server/location"
)

// A change that does not reach the secondary within the RPO target is an event at the primary, though the link
// is cut, and another one when it has arrived; services without such a change have none.
func TestLateAndArrivedChanges(t *testing.T) {
	var behind atomic.Int64 // Both clocks step by the target, so that nothing waits for it.
	const target = 20 * time.Second
	c := startAdjusted(t, func(o *location.Options) { o.Clock, o.RPOTarget = lateClock{o.Clock, &behind}, target })
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "v")
	drained(t, c)
	c.link.Cut()
	put(t, c, "northacct", "k", "late")
	events := func() []string { return accountEvents(c, North, "northacct", geo.Table) }
	require.Empty(t, events())
	behind.Store(-int64(target))
	eventually(t, "the change is late", func() bool { return len(events()) > 0 })
	c.link.Heal()
	eventually(t, "it has arrived", func() bool { return len(events()) > 1 })
	require.Equal(t, []string{"late changes are not at southcentralus after 20s", "arrived"}, events())
	require.Empty(t, accountEvents(c, North, "northacct", geo.Blob))
	require.Equal(t, "late", read(t, c, "northacct", "-secondary", "k"))
}
