package cluster

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A start that is refused, or breaks off, leaves what the next one goes by: it does not drop the witness.
func TestRefusedStartIsForgotten(t *testing.T) {
	o := Options{Dir: t.TempDir(), PortBase: freeBase(t), Witness: true, DNSZone: "names.test"}
	require.NoError(t, o.prepare(o.plan()))
	other, err := net.Listen("tcp", o.Gateway().Admin())
	require.NoError(t, err)
	less := o
	less.Witness, less.DNSZone = false, ""
	require.ErrorContains(t, Start(t.Context(), less), "another process does")
	require.NoError(t, other.Close())
	as, err := Existing(o.Dir)
	require.NoError(t, err)
	require.Equal(t, o, as)

	obstacle := filepath.Join(o.folder(NamesName), configFile) + ".new"
	require.NoError(t, os.Mkdir(obstacle, 0o700))
	require.Error(t, o.prepare(o.plan()))
	as, err = Existing(o.Dir)
	require.NoError(t, err)
	require.Equal(t, o, as)

	// As an earlier version left it, whose nodes know of neither.
	require.NoError(t, os.Remove(obstacle))
	kept := map[string][]byte{}
	for _, name := range []string{WitnessName, NamesName} {
		kept[name], err = os.ReadFile(filepath.Join(o.folder(name), configFile))
		require.NoError(t, err)
	}
	require.NoError(t, less.prepare(less.plan()))
	for name, text := range kept {
		require.NoError(t, write(o.folder(name), file{configFile, text}))
	}
	as, err = Existing(o.Dir)
	require.NoError(t, err)
	require.Equal(t, less, as)
}

// If two starts run at once, the second one finds what the first one started: each would start all, and lose the
// other's.
func TestTwoStartsAtOnce(t *testing.T) {
	o := Options{Dir: t.TempDir(), PortBase: freeBase(t), Binary: filepath.Join(t.TempDir(), "antipode")}
	starts := filepath.Join(t.TempDir(), "starts")
	require.NoError(t, os.WriteFile(o.Binary, []byte("#!/bin/sh\necho $3 >> "+starts+"\nexec sleep 60\n"), 0o700))
	t.Cleanup(func() { require.NoError(t, Stop(context.Background(), o)) })
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- o.launchMissing(t.Context()) }()
	}
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(starts)
		return err == nil && strings.Count(string(text), "\n") >= len(o.plan())
	}, 10*time.Second, 10*time.Millisecond)
	text, err := os.ReadFile(starts)
	require.NoError(t, err)
	require.Equal(t, len(o.plan()), strings.Count(string(text), "\n"), string(text))
}

// A stop beside a start that launches waits for it, and ends all that it launched.
func TestStopBesideAStart(t *testing.T) {
	o := Options{Dir: t.TempDir(), PortBase: freeBase(t), Binary: filepath.Join(t.TempDir(), "antipode")}
	require.NoError(t, os.WriteFile(o.Binary, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700))
	unlock, err := o.lock(t.Context()) // As launchMissing has it.
	require.NoError(t, err)
	stopped := make(chan error, 1)
	go func() { stopped <- Stop(t.Context(), o) }()
	members := o.plan()
	require.NoError(t, o.prepare(members))
	require.NoError(t, o.launch(members[0]))
	time.Sleep(3 * listenPause)
	require.NoError(t, o.launchAll(members))
	require.Empty(t, stopped)
	unlock()
	require.NoError(t, <-stopped)
	for _, m := range members {
		pid, err := o.PID(m.name)
		require.NoError(t, err)
		require.Zero(t, pid, m.name)
	}
}

// A folder that is not there has nothing to stop, and is not made.
func TestStopNowhere(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "none"), PortBase: 15000}
	require.NoError(t, Stop(t.Context(), o))
	require.NoDirExists(t, o.Dir)
}

// A stop while a start waits ends the wait, which would go on without end.
func TestStoppedWhileItStarts(t *testing.T) {
	o := Options{Dir: t.TempDir(), PortBase: freeBase(t), Binary: filepath.Join(t.TempDir(), "antipode")}
	require.NoError(t, os.WriteFile(o.Binary, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700))
	require.NoError(t, o.launchMissing(t.Context()))
	require.NoError(t, Stop(t.Context(), o))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.ErrorContains(t, o.awaitAll(ctx), "northcentralus-1 ended: it was stopped meanwhile")
	require.ErrorAs(t, AwaitReady(ctx, o), new(*Ended))
}

// A process that ends while a start waits for it, and is started by another start, is waited for: it does not answer yet.
func TestStartedAgainWhileAStartWaits(t *testing.T) {
	o := Options{Dir: t.TempDir(), PortBase: freeBase(t), Binary: filepath.Join(t.TempDir(), "antipode")}
	require.NoError(t, os.WriteFile(o.Binary, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700))
	t.Cleanup(func() { require.NoError(t, Stop(context.Background(), o)) })
	require.NoError(t, o.launchMissing(t.Context()))
	m := o.plan()[0]
	require.NoError(t, o.end(t.Context(), m.name))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waits := make(chan string, 1000)
	o.OnWait = func(what string) { waits <- what }
	awaited := make(chan error, 1)
	go func() { awaited <- o.await(ctx, m.name, o.answering()[0].address) }()
	time.Sleep(endedSettle / 4) // It has found none, and lets others end.
	require.NoError(t, o.launch(m))
	select {
	case what := <-waits:
		require.Equal(t, m.name+" does not listen yet", what)
	case err := <-awaited:
		require.Fail(t, "it did not wait", "%v", err)
	}
	cancel()
	require.ErrorContains(t, <-awaited, m.name+": ", "it waited until the end")
}
