package ledger

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/geo"
	"antipode/test/fake"
	"antipode/test/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// written is a ledger of some writes to a store.
func written(t *testing.T, faults fake.Faults) (*Ledger, *fake.Store, *rest.Client) {
	t.Helper()
	store := fake.New(faults, 0)
	store.Restart()
	srv := httptest.NewServer(store)
	hc := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	}}}
	t.Cleanup(func() {
		hc.CloseIdleConnections()
		srv.Close()
	})
	c, l := rest.NewPathStyle(hc, 1, false), &Ledger{Prefix: "a"}
	require.NoError(t, Setup(t.Context(), c))
	ctx, halt := context.WithCancel(t.Context())
	defer halt()
	go func() {
		for l.Acked() < 60 && ctx.Err() == nil {
			pause(ctx, time.Millisecond)
		}
		halt()
	}()
	l.Run(ctx, c, 4, 0)
	return l, store, c
}

// The ledger finds each of its writes in a store that keeps them, and names exactly those that a store has lost.
func TestLedgerFindsWhatIsLost(t *testing.T) {
	l, store, c := written(t, fake.Faults{})
	store.Crash()
	store.Restart()
	found, err := l.Find(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, l.Entries(), found.Kept)
	require.GreaterOrEqual(t, l.Acked(), 60)
	require.NotEmpty(t, Of(found.Kept, geo.Table))
	require.NotEmpty(t, Of(found.Kept, geo.Blob))
	for _, e := range found.Kept {
		require.NotZero(t, e.At)
	}
	require.Equal(t, found.Kept, Through(found.Kept, time.Now()))
	require.Empty(t, Through(found.Kept, found.Kept[0].Began.Add(-time.Hour)))

	l, store, c = written(t, fake.Faults{LoseOnCrash: true})
	store.Crash()
	store.Restart()
	found, err = l.Find(t.Context(), c)
	require.NoError(t, err)
	require.NotEmpty(t, found.Lost)
	require.Len(t, l.Entries(), len(found.Kept)+len(found.Lost))

	l.entries[0].Fate = Unknown
	for i := range l.entries {
		if l.entries[i].Key == found.Lost[0].Key {
			l.entries[i].Fate = Unknown
		}
	}
	again, err := l.Find(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, again.Lost, len(found.Lost)-1)
	require.NotEmpty(t, again.Absent)
	for i := range l.entries {
		if l.entries[i].Key == found.Kept[0].Key {
			l.entries[i].Fate = Refused
		}
	}
	_, err = l.Find(t.Context(), c)
	require.ErrorIs(t, err, ErrWrong)
}

// What is not certain is unknown: an answer of the 500s, none, and a conflict.
func TestLedgerTakesNoAnswerForMore(t *testing.T) {
	for status, want := range map[int]Fate{201: Acked, 204: Acked, 404: Refused, 412: Refused, 409: Unknown, 500: Unknown, 503: Unknown} {
		require.Equal(t, want, fateOf(rest.Answer{Status: status}, nil), "%d", status)
	}
	require.Equal(t, Unknown, fateOf(rest.Answer{}, errors.New("connection reset")))
	require.Equal(t, Refused, fateOf(rest.Answer{}, &net.OpError{Op: "dial", Err: errors.New("refused")}))
}
