package api_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/geo"
	"antipode/services/catalog"
)

// What `-secondary` of an account that is not RA-GRS refuses, after the signature was compared: of LRS its
// primary, of GRS its secondary. Statistics are refused as well (protocol/queue.md 11).
//
// Capability: Two locations: LRS, GRS and RA-GRS accounts.
func TestSecondaryIsNotReadable(t *testing.T) {
	t.Parallel()
	f := startFrontEnd(t, api.Options{Location: "north", Directory: directory{"acct": "south", "alone": "alone", "hidden": "hidden"}})
	const stats = "/?restype=service&comp=stats"
	for _, name := range []string{"alone", "hidden"} {
		for target, says := range map[string]string{
			"GET " + stats: "Read operations are currently disabled", "GET /things(PartitionKey='p',RowKey='r')": "Read operations are currently disabled",
			"POST /things": "Write operations are not allowed",
		} {
			method, path, _ := strings.Cut(target, " ")
			a := send(t, signed(t, method, f.url+"/"+name+"-secondary"+path, nil))
			require.Equal(t, 403, a.status, "%s %s", name, target)
			require.Equal(t, "InsufficientAccountPermissions", a.code)
			require.Contains(t, a.body, says)
		}
		r := signed(t, "GET", f.url+"/"+name+"-secondary"+stats, nil)
		r.Header.Set("Authorization", "SharedKeyLite "+name+":AAAA")
		require.Equal(t, "AuthenticationFailed", send(t, r).code)
	}
	require.Equal(t, 200, send(t, signed(t, "GET", f.url+"/acct-secondary"+stats, nil)).status)
}

// A secondary whose copy is being made answers no read of data, whose rows may be a part of their partition, but
// statistics (protocol/service.md 11). Once the copy is to be made again, what was there before is read (R18).
func TestR18CopyIsNotReadableBeforeItIsComplete(t *testing.T) {
	t.Parallel()
	f := startFrontEnd(t, api.Options{Location: "north", Directory: directory{"acct": "copying"}})
	a := send(t, signed(t, "GET", f.url+"/acct-secondary/things(PartitionKey='p',RowKey='r')", nil))
	require.Equal(t, 503, a.status)
	require.Equal(t, "ServerBusy", a.code)
	require.Contains(t, a.body, "being filled with a copy")
	a = send(t, signed(t, "POST", f.url+"/acct-secondary/things", nil))
	require.Equal(t, "InsufficientAccountPermissions", a.code, "writes stay refused")
	require.Equal(t, 200, send(t, signed(t, "GET", f.url+"/acct-secondary/?restype=service&comp=stats", nil)).status)
}

// The same where a part of the copy is lost, although it is whole by the account's record: a range was recovered with a
// loss (R4).
func TestR4PartOfACopyIsNotReadable(t *testing.T) {
	t.Parallel()
	whole := false
	f := startFrontEnd(t, api.Options{
		Location: "north", Directory: directory{"acct": "south"},
		Authority: authority{whole: func(_ context.Context, a *catalog.Account, s geo.Service) (bool, error) {
			return whole && a.Name == "acct" && s == geo.Table, nil
		}},
	})
	read := func() answer {
		return send(t, signed(t, "GET", f.url+"/acct-secondary/things(PartitionKey='p',RowKey='r')", nil))
	}
	a := read()
	require.Equal(t, 503, a.status)
	require.Contains(t, a.body, "being filled with a copy")
	require.Equal(t, 200, send(t, signed(t, "GET", f.url+"/acct-secondary/?restype=service&comp=stats", nil)).status)
	whole = true
	require.NotEqual(t, 503, read().status)
}
