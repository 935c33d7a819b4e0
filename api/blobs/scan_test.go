package blobs

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/stamp/kv"
)

// A page that panics gives its slot back: the others would wait for it until the process
// ends.
func TestPanicGivesSlotBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Scans = services.NewScans(clock.System{}) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c := &call{Handler: r.handler, ctx: ctx, r: &protocol.Request{HTTP: httptest.NewRequest("GET", "/", nil), Account: &r.account}}
	costly := func(_ kv.Reader, b *services.Budget) (more bool, err error) { return b.Spend(ctx, 1_000_000) }
	for range 100 { // More than there are slots.
		require.Panics(t, func() {
			_, _ = scan(c, geo.FirstRange(geo.Blob), func(r kv.Reader, b *services.Budget) (bool, error) {
				_, err := costly(r, b)
				require.NoError(t, err)
				panic("a bug")
			})
		})
	}
	more, err := scan(c, geo.FirstRange(geo.Blob), costly)
	require.NoError(t, err)
	require.True(t, more)
}
