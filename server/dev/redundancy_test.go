package dev

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/directory"
	"antipode/geo"
	"antipode/replication/link"
	"antipode/replication/receive"
	"antipode/services/catalog"
	"antipode/stamp/kv"
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
	eventually(t, "the creation is over", func() bool { // By the answer, unless the machine starves.
		if a.Operation != "" {
			a, err = adminClient(t, c).Account(t.Context(), name)
		}
		return err == nil && a.Operation == ""
	})
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
			m := leaderOf(c, l, geo.FirstRange(s)).Machine
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
//
// Capability: Two locations: LRS, GRS and RA-GRS accounts.
func TestR10LRSAccount(t *testing.T) {
	t.Parallel()
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
	for _, ensure := range []bool{false, true} {
		_, err = adminClient(t, c).CreateAccount(t.Context(), wire.NewAccount{Name: "other", Location: South, Key1: "YQ==", Ensure: ensure})
		require.ErrorContains(t, err, "key1 has 1 bytes")
	}
	_, err = adminClient(t, c).Account(t.Context(), "other")
	require.Error(t, err)
}

// A GRS account is copied as an RA-GRS one is, and operators see its Last Sync Time; clients cannot read its
// secondary (R13).
//
// Capability: Two locations: Changes of a redundancy.
// Capability: Two locations: LRS, GRS and RA-GRS accounts.
func TestR13GRSAccount(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	a := createAs(t, c, "hidden", South, "GRS")
	require.Equal(t, "GRS", a.Redundancy)
	require.Equal(t, North, a.Secondary)
	require.Empty(t, a.Endpoints[0].Secondary)
	createTable(t, c, "hidden")
	put(t, c, "hidden", "k", "v")
	eventually(t, "the secondary knows the account", func() bool {
		_, err := c.locations[North].Directory.Account(t.Context(), "hidden")
		return err == nil
	})
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

func updateTo(t *testing.T, c *Cluster, account geo.Account, redundancy string) wire.AccountUpdated {
	t.Helper()
	a, err := adminClient(t, c).UpdateAccount(t.Context(), account, wire.UpdateAccount{Redundancy: redundancy})
	require.NoError(t, err)
	require.Equal(t, redundancy, a.Redundancy)
	return a
}

// followed changes the redundancy of an account. Both locations have that by the answer, but where a range had no leader for a
// moment, as on a starved machine: then it is waited for.
func followed(t *testing.T, c *Cluster, account geo.Account, redundancy string) {
	t.Helper()
	if requireReached(t, updateTo(t, c, account, redundancy)) {
		return
	}
	eventually(t, "both locations have the change", func() bool {
		for _, l := range []geo.Location{North, South} {
			if a, err := c.locations[l].Directory.Account(t.Context(), account); err != nil || string(a.Redundancy) != redundancy || a.Operation != nil {
				return false
			}
		}
		return true
	})
}

// requireReached requires that the other location has a change by its answer, or that a range there had no leader: reached reports
// which.
func requireReached(t *testing.T, u wire.AccountUpdated) (reached bool) {
	t.Helper()
	require.True(t, u.Behind == "" || strings.Contains(u.Behind, kv.ErrUnknown.Error()) || strings.Contains(u.Behind, kv.ErrBusy.Error()), u.Behind)
	return u.Behind == ""
}

// GRS and RA-GRS follow each other while writes go on: `-secondary` is refused and read at once where both
// locations have the change by the answer, and the copy goes on all the while (R10, R13).
//
// Capability: Two locations: Changes of a redundancy.
func TestR13GRSAndRAGRS(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	w := startWriter(t, c, "northacct")
	for range 2 {
		followed(t, c, "northacct", "GRS")
		requireUnread(t, c, "northacct")
		followed(t, c, "northacct", "RA-GRS")
		w.arrives()
	}
	c.link.Cut()
	a := updateTo(t, c, "northacct", "GRS")
	require.NotEmpty(t, a.Behind)
	require.Empty(t, a.Endpoints[0].Secondary)
	c.link.Heal()
	followed(t, c, "northacct", "GRS") // Asked for again.
	requireUnread(t, c, "northacct")
	w.stop()
	_, err := c.WaitLive(t.Context(), "northacct")
	require.NoError(t, err)
}

// writer writes one key of an account upward.
type writer struct {
	t       *testing.T
	c       *Cluster
	account geo.Account
	acked   atomic.Int64
	stop    func()
}

func startWriter(t *testing.T, c *Cluster, account geo.Account) *writer {
	w := &writer{t: t, c: c, account: account}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := int64(1); ctx.Err() == nil; n++ {
			a, err := try(c.gateway, account, http.MethodPut, entityPath(account, "", "w"), fmt.Sprintf(`{"v":"%d"}`, n))
			if err == nil && a.status == http.StatusNoContent {
				w.acked.Store(n)
			}
		}
	})
	w.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(w.stop)
	eventually(t, "writes go on", func() bool { return w.acked.Load() > 0 })
	return w
}

// value reads the key.
func (w *writer) value(suffix string) int64 {
	n, _ := strconv.ParseInt(read(w.t, w.c, w.account, suffix, "w"), 10, 64)
	return n
}

// goesOn waits until writes are acknowledged that began after the call.
func (w *writer) goesOn() {
	w.t.Helper()
	from := w.acked.Load()
	eventually(w.t, "writes go on", func() bool { return w.acked.Load() > from+1 })
}

// arrives waits until what is acknowledged now is at the secondary.
func (w *writer) arrives() {
	w.t.Helper()
	upTo := w.acked.Load()
	eventually(w.t, "the writes arrive", func() bool { return w.value("-secondary") >= upTo })
}

// left counts what is left of an account's streams: records in outboxes of the north, and cursors and stops
// at the south.
func left(t *testing.T, c *Cluster, account geo.Account) (n int) {
	t.Helper()
	for _, s := range []geo.Service{geo.Catalog, geo.Blob, geo.Queue, geo.Table} {
		id := geo.FirstRange(s)
		north, south := c.locations[North].Leader(id), c.locations[South].Leader(id)
		if north == nil || south == nil {
			return -1
		}
		heads, _ := north.Machine.Heads()
		for st, h := range heads {
			if st.Account == account {
				n += int(h.Seq - north.Machine.Trimmed(st))
			}
		}
		p := south.Machine.Progress(geo.SourceRange{Origin: North, Range: id}, account)
		n += len(p.Streams) + len(p.Stops)
	}
	return n
}

// An RA-GRS account becomes LRS while writes go on, with the link cut and both locations restarted in
// between: writes go on at once, another operation is refused by name, and when the link is back its streams
// end at both ends, its copy is deleted, and nothing forks. Nothing acknowledged is lost, and other
// accounts are as before (R10, R13, R19).
//
// Capability: Two locations: Changes of a redundancy.
func TestR19ToLRS(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	createTable(t, c, "southacct")
	w := startWriter(t, c, "northacct")
	w.arrives()
	require.Positive(t, copyAt(t, c, South, "northacct"))
	c.link.Cut()
	w.goesOn()
	a := updateTo(t, c, "northacct", "LRS")
	require.NotEmpty(t, a.Behind)
	require.Contains(t, a.Operation, "the change to LRS")
	for range 5 { // Not what the other location still has. What the operation waits for is known after its next step.
		shown, err := adminClient(t, c).Account(t.Context(), "northacct")
		require.NoError(t, err)
		all, err := adminClient(t, c).Accounts(t.Context())
		require.NoError(t, err)
		for _, got := range []wire.Account{shown.Account, all[0].Account} {
			got.OperationWaits = a.OperationWaits
			require.Equal(t, a.Account, got)
		}
	}
	require.Empty(t, a.Secondary)
	require.EqualValues(t, 2, a.Epoch.Number)
	_, err := adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Redundancy: "GRS"})
	require.ErrorContains(t, err, "the change to LRS: the other location has not deleted its copy yet")
	w.goesOn()

	for _, l := range []geo.Location{North, South} {
		require.NoError(t, c.servers[l].Stop())
		require.NoError(t, c.servers[l].Start(t.Context()))
	}
	w.goesOn()
	c.link.Heal()
	eventually(t, "the streams end at both locations", func() bool { return left(t, c, "northacct") == 0 })
	eventually(t, "the operation ends", func() bool {
		a, err := c.locations[North].Directory.Account(t.Context(), "northacct")
		return err == nil && a.Operation == nil
	})
	eventually(t, "no node holds a row of the copy", func() bool { return copyAt(t, c, South, "northacct") == 0 })
	require.Positive(t, copyAt(t, c, South, "southacct"))
	requireUnread(t, c, "northacct")
	got, err := c.locations[South].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, a.Epoch, wire.EpochOf(got.GeoEpoch()))
	w.goesOn()
	w.stop()
	require.GreaterOrEqual(t, w.value(""), w.acked.Load())
	eventually(t, "they have none any more", func() bool { return left(t, c, "northacct") == 0 }) // It is -1 without a leader.

	put(t, c, "southacct", "k", "v")
	eventually(t, "another account is copied as before", func() bool { return read(t, c, "southacct", "-secondary", "k") == "v" })
	for _, l := range []geo.Location{North, South} {
		for _, alarm := range []string{receive.AlarmFork, receive.AlarmLost} {
			require.Zero(t, c.meters.Alarms.Counts(l)[alarm], "%s at %s", alarm, l)
		}
	}
	_, err = adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{Redundancy: "ZRS"})
	require.ErrorContains(t, err, "is no redundancy")
	_, err = adminClient(t, c).UpdateAccount(t.Context(), "nobody", wire.UpdateAccount{Redundancy: "GRS"})
	require.ErrorContains(t, err, "no such account")
}

// mutePeer is a peer whose announcements are lost while it is mute.
type mutePeer struct {
	directory.Peer
	mute atomic.Bool
}

// Announce implements directory.Peer.
func (p *mutePeer) Announce(ctx context.Context, a catalog.Account) error {
	if p.mute.Load() {
		return link.ErrCut
	}
	return p.Peer.Announce(ctx, a)
}

// An account becomes LRS while no announcement of it gets through and the streams flow. Its last record in
// the catalog's stream is enough: Last Sync Time never covers a write that is not copied, and then
// `-secondary` is refused (R13). The rest follows with the calls.
func TestR13LeaveWithoutCalls(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	north := c.locations[North]
	peer := &mutePeer{Peer: linkedDirectory{c.link, c.locations[South]}}
	north.Directory.SetPeer(peer)
	createAs(t, c, "other", North, "GRS") // Its closed times go on.
	createTable(t, c, "northacct")
	w := startWriter(t, c, "northacct")
	w.arrives()
	peer.mute.Store(true)
	require.NotEmpty(t, updateTo(t, c, "northacct", "LRS").Behind)
	changed := time.Now()
	w.goesOn()
	eventually(t, "the secondary knows", func() bool {
		// What it shows until then is from before the change: one second is the clocks' tolerance.
		if r := tableStats(c, South, "northacct"); r.Known() {
			require.Less(t, r.LastSync.Time(), changed.Add(time.Second))
		}
		a, err := c.locations[South].Directory.Account(t.Context(), "northacct")
		return err == nil && a.Redundancy == catalog.LRS
	})
	requireUnread(t, c, "northacct")
	w.goesOn()
	a, err := north.Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.NotNil(t, a.Operation)

	peer.mute.Store(false)
	eventually(t, "the operation ends", func() bool {
		a, err := north.Directory.Account(t.Context(), "northacct")
		return err == nil && a.Operation == nil && left(t, c, "northacct") == 0
	})
	w.goesOn()
	w.stop()
	require.GreaterOrEqual(t, w.value(""), w.acked.Load())
}
