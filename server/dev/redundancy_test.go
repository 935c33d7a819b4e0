package dev

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

func adminClient(t *testing.T, c *Cluster) *wire.Client {
	t.Helper()
	client, err := wire.New("http://"+c.gateway.Admin(), nil)
	require.NoError(t, err)
	return client
}

func createAs(t *testing.T, c *Cluster, name geo.Account, l geo.Location, redundancy string) wire.AccountInfo {
	t.Helper()
	keys, err := c.admin.Keys(t.Context(), "northacct")
	require.NoError(t, err)
	a, err := adminClient(t, c).CreateAccount(t.Context(), wire.NewAccount{Name: name, Location: l, Redundancy: redundancy, Key1: keys.Key1, Key2: keys.Key2})
	require.NoError(t, err)
	return a
}

// requireUnread checks that `-secondary` of an account refuses reads, statistics included, and writes.
func requireUnread(t *testing.T, c *Cluster, account geo.Account) {
	t.Helper()
	for _, r := range []struct{ method, target, body string }{
		{http.MethodGet, entityPath(account, "-secondary", "k"), ""},
		{http.MethodGet, "/" + string(account) + "-secondary/?restype=service&comp=stats", ""},
		{http.MethodPut, entityPath(account, "-secondary", "k"), `{"v":"no"}`},
	} {
		a := call(t, c.gateway, account, r.method, r.target, r.body)
		require.Equal(t, http.StatusForbidden, a.status, "%s: %s", r.target, a.body)
		require.Equal(t, "InsufficientAccountPermissions", a.header.Get("x-ms-error-code"))
	}
}

// streamsOf counts the streams of an account that a location numbers or receives.
func streamsOf(c *Cluster, account geo.Account) (n int) {
	for _, l := range []geo.Location{North, South} {
		for _, s := range []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} {
			m := c.locations[l].Leader(geo.FirstRange(s)).Machine
			heads, _ := m.Heads()
			for st := range heads {
				if st.Account == account {
					n++
				}
			}
			for _, from := range []geo.Location{North, South} {
				n += len(m.Progress(geo.SourceRange{Origin: from, Range: geo.FirstRange(s)}, account).Streams)
			}
		}
	}
	return n
}

// The changes of an LRS account have no numbers and are in no outbox: both locations know the account, and
// no stream of it exists (R10). Its `-secondary` is refused, through either location; the link may be cut.
func TestR10LRSAccount(t *testing.T) {
	c := startFaulty(t)
	a := createAs(t, c, "alone", North, "Standard_LRS")
	require.Equal(t, "LRS", a.Redundancy)
	require.Empty(t, a.Secondary)
	require.Empty(t, a.Operation)
	for _, e := range a.Endpoints {
		require.Empty(t, e.Secondary)
	}
	createTable(t, c, "alone")
	put(t, c, "alone", "k", "v")
	requireUnread(t, c, "alone")
	require.Equal(t, "alone", string(a.Name))
	for _, l := range []geo.Location{North, South} { // The front end of the south forwards.
		got := call(t, c.ports[l], "alone", http.MethodGet, entityPath("alone", "", "k"), "")
		require.Equal(t, http.StatusOK, got.status, "%s: %s", l, got.body)
	}
	c.link.Cut()
	put(t, c, "alone", "k", "while cut")
	require.Equal(t, "while cut", read(t, c, "alone", "", "k"))
	c.link.Heal()
	require.Zero(t, streamsOf(c, "alone"))
	require.Positive(t, streamsOf(c, "northacct"))

	_, err := adminClient(t, c).CreateAccount(t.Context(), wire.NewAccount{Name: "alone", Location: South})
	require.ErrorContains(t, err, "an account of that name exists")
	_, err = adminClient(t, c).CreateAccount(t.Context(), wire.NewAccount{Name: "other", Location: South, Redundancy: "ZRS"})
	require.ErrorContains(t, err, "is no redundancy")
	_, err = adminClient(t, c).Account(t.Context(), "other")
	require.Error(t, err)
}

// A GRS account is copied as an RA-GRS one is, and operators see its Last Sync Time; clients cannot read its
// secondary (R13).
func TestR13GRSAccount(t *testing.T) {
	c := startFaulty(t)
	a := createAs(t, c, "hidden", South, "GRS")
	require.Equal(t, "GRS", a.Redundancy)
	require.Equal(t, North, a.Secondary)
	require.Empty(t, a.Endpoints[0].Secondary)
	createTable(t, c, "hidden")
	put(t, c, "hidden", "k", "v")
	requireUnread(t, c, "hidden")
	_, err := c.WaitLive(t.Context(), "hidden")
	require.NoError(t, err)
	status, err := adminClient(t, c).Status(t.Context())
	require.NoError(t, err)
	for _, s := range status.Accounts {
		if s.Name == "hidden" {
			require.Len(t, s.Services, 3)
			require.NotNil(t, s.Services[0].LagSeconds)
		}
	}
}
