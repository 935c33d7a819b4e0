package load

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/geo"
	"antipode/test/fake"
	"antipode/test/oracle"
	"antipode/test/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startFake serves a fake store and returns a load on it.
func startFake(t *testing.T, lies fake.Lies, delay time.Duration) (*fake.Store, *Load) {
	t.Helper()
	store := fake.New(lies, delay)
	server := httptest.NewServer(store)
	hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(func() {
		hc.CloseIdleConnections()
		server.Close()
	})
	client := func(secondary bool) *rest.Client {
		c := rest.NewPathStyle(hc, 1, secondary)
		label := string(rest.DevAccount)
		if secondary {
			label += geo.SecondarySuffix
		}
		for _, s := range geo.Services {
			c.Base[s] = server.URL + "/" + label
		}
		return c
	}
	return store, New(client(false), client(true), Options{Clients: 8, BigClients: 1, BigWritesMax: 2, Seed: 1})
}

// play runs two rounds of writing, crash and reading back, with the sampler
// beside them, and returns everything that was complained of.
func play(t *testing.T, lies fake.Lies) (samples, reads int, complaint error) {
	t.Helper()
	store, l := startFake(t, lies, 300*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	require.NoError(t, l.Setup(ctx))

	sampler := NewSampler(l, l.Secondary)
	sampling, stop := context.WithCancel(ctx)
	sampled := make(chan error, 1)
	go func() { sampled <- sampler.Run(sampling) }()

	for range 2 {
		running, halt := context.WithTimeout(ctx, 1500*time.Millisecond)
		time.AfterFunc(1400*time.Millisecond, store.Crash)
		complaint = errors.Join(complaint, l.Run(running))
		halt()
		store.Restart()
		complaint = errors.Join(complaint, l.Settle(ctx))
		complaint = errors.Join(complaint, l.Final(ctx))
	}
	stop()
	complaint = errors.Join(complaint, <-sampled)
	samples, reads = sampler.Counts()
	return samples, reads, complaint
}

// A sound store passes the whole check, and the check looked at something.
func TestSoundStore(t *testing.T) {
	t.Parallel()
	samples, reads, complaint := play(t, fake.Lies{})
	require.NoError(t, complaint)
	require.Positive(t, samples)
	require.Greater(t, reads, 100)
}

// Each planted lie is found, and under its own name.
func TestLies(t *testing.T) {
	for name, tt := range map[string]struct {
		lies fake.Lies
		want error
	}{
		"acknowledged writes lost by a crash": {fake.Lies{LoseOnCrash: true}, oracle.ErrLost},
		"last sync time is now()":             {fake.Lies{SyncTimeIsNow: true}, oracle.ErrBehind},
		"a change skipped at the secondary":   {fake.Lies{SkipAtSecondary: 50}, oracle.ErrBehind},
		"a merge applied by half":             {fake.Lies{Tear: true}, errTorn},
		"other ETag at the secondary":         {fake.Lies{OtherTag: true}, oracle.ErrTag},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, complaint := play(t, tt.lies)
			require.ErrorIs(t, complaint, tt.want)
		})
	}
}
