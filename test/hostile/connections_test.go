package hostile_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/test/hostile"
)

// A process with few files has few connections, and two tenants that take all they can leave some for a third: those that
// were refused are closed for its sake, and an account has a quarter of them at most.
//
// Capability: Clients: 260 hostile clients beside an honest one.
func TestTenantsLeaveConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("end-to-end tests need more time than -short has")
	}
	const files = 2048 // Of which a listener has 128 connections.
	p := start(t, files, "honest", "mallory", "trudy")
	ctx, cancel := context.WithTimeout(t.Context(), startWait+*duration+stopWait)
	defer cancel()
	honest := &hostile.Honest{Client: clientOf(p, 0, "honest")}
	require.NoError(t, honest.Prepare(ctx))
	attacking, end := context.WithCancel(ctx)
	ended := make(chan struct{}, 2)
	for _, name := range []string{"mallory", "trudy"} {
		crowd := &hostile.Crowd{Client: clientOf(p, 0, name)}
		require.NoError(t, crowd.Client.CreateTable(ctx, "heavy"))
		require.NoError(t, crowd.Client.CreateContainer(ctx, "long"))
		require.NoError(t, crowd.Client.CreateQueue(ctx, "long"))
		crowd.TakeConnections(100)
		go func() { crowd.Run(attacking); t.Log(name, crowd.Seen()); ended <- struct{}{} }()
	}
	attacked, err := honest.Run(ctx, *duration/4+2*time.Second)
	open := openFiles(t, p.PID())
	end()
	<-ended
	<-ended
	require.NoError(t, err)
	t.Logf("%v; %d files", attacked, open)
	require.Empty(t, attacked.Failed[:min(3, len(attacked.Failed))], "a third tenant is served")
	require.Less(t, open, files)
}
