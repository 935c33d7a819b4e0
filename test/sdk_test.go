package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/rest"
)

// style is one of the two ways to address an account. The SDKs must work
// unchanged with both.
type style string

const (
	hostStyle style = "host"
	pathStyle style = "path"
)

// endpoint is the address of a service of the dev account on the process's gateway.
func endpoint(p *devproc.Process, st style, s geo.Service, secondary bool) string {
	label := string(rest.DevAccount)
	if secondary {
		label += geo.SecondarySuffix
	}
	port := p.PortBase + int(s-geo.Blob)
	if st == hostStyle {
		return fmt.Sprintf("http://%s.%v.localhost:%d", label, s, port)
	}
	return fmt.Sprintf("http://127.0.0.1:%d/%s", port, label)
}

// clientOptions sends through the tests' dialer.
func clientOptions(p *devproc.Process) azcore.ClientOptions {
	return azcore.ClientOptions{Transport: p.HTTP, Retry: rest.RetryBusy()}
}

// requireCode requires that an SDK call failed with this status and code.
func requireCode(t *testing.T, err error, status int, code string) {
	t.Helper()
	var re *azcore.ResponseError
	require.ErrorAs(t, err, &re)
	require.Equal(t, fmt.Sprint(status, " ", code), fmt.Sprint(re.StatusCode, " ", re.ErrorCode), "%v", err)
}

// requirePlausible requires a Last Sync Time that is in the past, by not much.
func requirePlausible(t *testing.T, status string, lastSync *time.Time) {
	t.Helper()
	require.Equal(t, "live", status)
	require.NotNil(t, lastSync)
	age := time.Since(*lastSync)
	require.GreaterOrEqual(t, age, time.Duration(0), "last sync time %v is in the future", lastSync)
	require.Less(t, age, arriveWait, "last sync time %v", lastSync)
}

// A user of the official SDKs writes at the primary, reads the same bytes and
// ETags at -secondary, sees the statistics live, and is refused every write
// there: Go clients in both address styles, and the JavaScript client.
// It holds invariants 4 and 7.
//
// Capability: Clients: Official SDKs against both locations.
// Capability: Queues: The protocol of queues.
func TestSDK(t *testing.T) {
	p := startDev(t)
	for _, st := range []style{hostStyle, pathStyle} {
		t.Run("aztables/"+string(st), func(t *testing.T) { testTables(t, p, st) })
		t.Run("azblob/"+string(st), func(t *testing.T) { testBlobs(t, p, st) })
		t.Run("azqueue/"+string(st), func(t *testing.T) { testQueues(t, p, st) })
	}
	t.Run("npm", func(t *testing.T) { testNPM(t, p) })
	t.Run("writes on secondary", func(t *testing.T) { testSecondaryRefuses(t, p) })
	t.Run("credentials", func(t *testing.T) { testCredentials(t, p) })
	t.Run("stop", func(t *testing.T) {
		ctx, cancel := contextFor(t, stopWait)
		defer cancel()
		require.NoError(t, p.Stop(ctx), "SIGTERM drains and exits 0")
	})
}

// sameOrWait explains a value that has not arrived yet; nil once want is there.
func sameOrWait(err error, got, want any) error {
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}
