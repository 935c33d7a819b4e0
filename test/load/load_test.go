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
	return store, New(client(false), client(true), Options{Clients: 8, BlocksEach: 8, BigClients: 1, BigWritesMax: 4, Seed: 1})
}

// shipDelay is how long the fake takes to the secondary: longer than the second by which
// a printed Last Sync Time may be late, so that one which lies does so at any moment.
const shipDelay = 1200 * time.Millisecond

// play runs two rounds of writing, crash and reading back, with the sampler beside
// them, and returns what was complained of first.
func play(t *testing.T, lies fake.Lies) (samples, reads int, complaint error) {
	t.Helper()
	store, l := startFake(t, lies, shipDelay)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	require.NoError(t, l.Setup(ctx))

	sampler := NewSampler(l, l.Secondary)
	sampling, stop := context.WithCancel(ctx)
	sampled := make(chan error, 1)
	go func() { sampled <- sampler.Run(sampling) }()

	for round := 0; round < 2 && complaint == nil; round++ {
		complaint = playRound(ctx, store, l)
	}
	stop()
	complaint = errors.Join(complaint, <-sampled)
	samples, reads = sampler.Counts()
	return samples, reads, complaint
}

// playRound writes until the store crashes, and reads everything back.
func playRound(ctx context.Context, store *fake.Store, l *Load) error {
	running, halt := context.WithCancel(ctx)
	defer halt()
	done := make(chan error, 1)
	go func() { done <- l.Run(running) }()
	select {
	case err := <-done:
		return err
	case <-time.After(1500 * time.Millisecond):
	}
	store.Crash()
	halt()
	if err := <-done; err != nil {
		return err
	}
	store.Restart()
	if err := l.Settle(ctx); err != nil {
		return err
	}
	return l.Final(ctx)
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
		"a transaction applied in part":       {fake.Lies{SplitTransactions: true}, errSplit},
		"an uncommitted block shows":          {fake.Lies{ShowUncommitted: true}, errUncommitted},
		"uncommitted blocks lost by a crash":  {fake.Lies{DropUncommitted: true}, errBlockLost},
		"a blob missing from listings":        {fake.Lies{ListMisses: 9}, errListing},
		"a deleted blob in listings":          {fake.Lies{ListDeleted: true}, errListing},
		"a condition ignored":                 {fake.Lies{IgnoreConditions: true}, ErrContradiction},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, complaint := play(t, tt.lies)
			require.ErrorIs(t, complaint, tt.want)
		})
	}
}
