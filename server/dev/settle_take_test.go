package dev

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stats"
)

// besides returns names of partitions of the account's table on the lane of k.
func besides(account geo.Account, n int) (out []string) {
	lane := func(pk string) geo.Lane {
		return keys.Partition{Service: geo.Table, Account: account, Container: "tbl", Object: pk}.Lane()
	}
	for i := 0; len(out) < n; i++ {
		if pk := fmt.Sprintf("p%d", i); lane(pk) == lane("k") {
			out = append(out, pk)
		}
	}
	return out
}

// blobCall sends a signed blob request.
func blobCall(t *testing.T, c *Cluster, method, target string, body []byte) (answer, error) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+c.gateway.Of(geo.Blob)+target, bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("x-ms-version", "2019-02-02")
	if method == http.MethodPut && !strings.Contains(target, "?") {
		r.Header.Set("x-ms-blob-type", "BlockBlob")
		r.Header.Set("Content-Type", "application/octet-stream")
	}
	require.NoError(t, auth.SignSharedKeyLite(r, geo.Blob, "northacct", key64, time.Now()))
	return roundTrip(r)
}

// R16: after a recovery with loss of the primary the secondary's side is kept: what clients had written, deleted and
// inserted before the loss is at both ends again, with the payload of blobs; what the primary has written since the
// recovery, on the same streams, is in its lost-and-found. What clients write after the command stays, and the
// settlement goes on after all processes were stopped at once.
func TestR16LostWritesAreTakenBack(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	a, err := blobCall(t, c, http.MethodPut, "/northacct/things?restype=container", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	names := besides("northacct", 4)
	deleted, inserted, since, fresh := names[0], names[1], names[2], names[3]
	for _, pk := range []string{"k", deleted, since} {
		put(t, c, "northacct", pk, "kept")
	}
	drained(t, c)
	left := follower(c, North)
	require.NoError(t, c.stopNode(t.Context(), North, left))
	putEventually(t, c, "northacct", "lost")
	put(t, c, "northacct", inserted, "lost")
	put(t, c, "northacct", since, "lost")
	a = call(t, c.gateway, "northacct", http.MethodDelete, entityPath("northacct", "", deleted), "", "If-Match", "*")
	require.Equal(t, http.StatusNoContent, a.status, a.body)
	payload := blobContent(3<<20, 7)
	a, err = blobCall(t, c, http.MethodPut, "/northacct/things/lost", payload)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	tag := a.header.Get("ETag")
	eventually(t, "all is at the secondary", func() bool {
		a, err := blobCall(t, c, http.MethodHead, "/northacct-secondary/things/lost", nil)
		return err == nil && a.status == http.StatusOK && read(t, c, "northacct", "-secondary", "k") == "lost" &&
			read(t, c, "northacct", "-secondary", inserted) == "lost" && read(t, c, "northacct", "-secondary", deleted) == "" &&
			read(t, c, "northacct", "-secondary", since) == "lost"
	})
	recoverOf(t, c, North, left)
	putEventually(t, c, "northacct", "after")
	put(t, c, "northacct", fresh, "after")
	a, err = blobCall(t, c, http.MethodHead, "/northacct/things/lost", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, a.status)

	for _, f := range sourceForks(t, c, "northacct") {
		q := wire.ResolveFork{StreamName: f.Name(), Keep: South}
		_, err := adminClient(t, c).Resolve(t.Context(), North, wire.ResolveFork{StreamName: f.Name(), Keep: "elsewhere"})
		require.ErrorContains(t, err, "can be kept, not that of \"elsewhere\"")
		r, err := adminClient(t, c).Resolve(t.Context(), North, q)
		require.NoError(t, err)
		require.Equal(t, South, r.Keep)
	}
	put(t, c, "northacct", since, "written since")
	for _, l := range []geo.Location{South, North} {
		require.NoError(t, c.servers[l].Stop())
	}
	for _, l := range []geo.Location{South, North} {
		require.NoError(t, c.servers[l].Start(t.Context()))
	}
	requireSettled(t, c, "northacct")
	want := map[string]string{"k": "lost", inserted: "lost", deleted: "", since: "written since", fresh: ""}
	for _, suffix := range []string{"", "-secondary"} {
		got := map[string]string{}
		for pk := range maps.Keys(want) {
			got[pk] = read(t, c, "northacct", suffix, pk)
		}
		require.Equal(t, want, got, suffix)
		a, err := blobCall(t, c, http.MethodGet, "/northacct"+suffix+"/things/lost", nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.status, suffix)
		require.Equal(t, tag, a.header.Get("ETag"))
		require.True(t, string(payload) == a.body, "%s: %d bytes differ", suffix, len(a.body))
	}
	require.Equal(t, map[string]string{"k": "after", deleted: "kept", fresh: "after"}, foundValues(t, c, North, "northacct"))
	require.Equal(t, map[string]string{since: "lost"}, foundValues(t, c, South, "northacct"))
	put(t, c, "northacct", "k", "later")
	eventually(t, "the stream goes on", func() bool { return read(t, c, "northacct", "-secondary", "k") == "later" })
}

// R16: a fork is resolved for the secondary's side: the primary takes the row that the secondary has under the same
// number, and keeps what it had. Other lanes are not touched, and once it is settled neither side can be chosen.
func TestR16ForkIsResolvedForTheSecondary(t *testing.T) {
	t.Parallel()
	c := forked(t)
	wrong := read(t, c, "northacct", "-secondary", "k")
	resolve(t, c, "northacct", South)
	for _, suffix := range []string{"", "-secondary"} {
		require.Equal(t, wrong, read(t, c, "northacct", suffix, "k"))
		require.Equal(t, "a", read(t, c, "northacct", suffix, "a"))
	}
	require.Equal(t, map[string]string{"k": "right"}, foundValues(t, c, North, "northacct"))
	require.Empty(t, foundValues(t, c, South, "northacct"))
	st := geo.Stream{
		Account: "northacct", Epoch: geo.Epoch{Number: 1, Location: North}, Range: geo.FirstRange(geo.Table),
		Lane: keys.Partition{Service: geo.Table, Account: "northacct", Container: "tbl", Object: "k"}.Lane(),
	}
	name := wire.StreamName{Account: st.Account, Epoch: wire.EpochOf(st.Epoch), Range: st.Range, Lane: st.Lane}
	for _, keep := range []geo.Location{North, South} {
		_, err := adminClient(t, c).Resolve(t.Context(), North, wire.ResolveFork{StreamName: name, Keep: keep})
		require.ErrorContains(t, err, "the stream goes on at "+string(South))
	}
	// What the receiver has lost it cannot give.
	byHand := change.Stop{Reason: change.StopLost, Here: geo.Head{Seq: 1}}
	require.NoError(t, c.locations[South].Submit(t.Context(), st.Range, stopByHand{st, byHand}))
	_, err := adminClient(t, c).Resolve(t.Context(), North, wire.ResolveFork{StreamName: name, Keep: South})
	require.ErrorContains(t, err, "only the side of the primary can be kept")
}

// R16, R18: once a loss of the primary has forked a service of an account that refuses writes when its changes are late,
// it refuses them, until a side was picked: none is acknowledged that would be undone for the secondary's. Another
// service takes writes, and so does an account that did not ask for it.
func TestR16ForkedWritesAreHeld(t *testing.T) {
	t.Parallel()
	c := forked(t)
	write := func() int {
		return once(t, c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"new"}`).status
	}
	require.Equal(t, http.StatusNoContent, write())
	_, err := adminClient(t, c).UpdateAccount(t.Context(), "northacct", wire.UpdateAccount{WhenLate: "refuse"})
	require.NoError(t, err)
	eventually(t, "writes of tables are held", func() bool { return write() == http.StatusServiceUnavailable })
	eventually(t, "blobs are written", func() bool {
		a, err := blobCall(t, c, http.MethodPut, "/northacct/things?restype=container", nil)
		return err == nil && (a.status == http.StatusCreated || a.status == http.StatusConflict)
	})
	resolve(t, c, "northacct", South)
	eventually(t, "writes go on", func() bool { return write() == http.StatusNoContent })
}

// R7, R16: a range of the primary has lost the whole epoch of an account's copy, which is made again for that. What the
// secondary alone has is taken back all the same, and then the bootstrap ends.
func TestR16LostEpochIsTakenBack(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "kept")
	drained(t, c)
	left, table := follower(c, North), geo.FirstRange(geo.Table)
	require.NoError(t, c.stopNode(t.Context(), North, left))
	putEventually(t, c, "northacct", "kept")
	before, _, err := c.locations[North].Directory.Rebuild(t.Context(), "northacct", nil)
	require.NoError(t, err)
	eventually(t, "the copy is made again", func() bool {
		return tableStats(c, South, "northacct").Status == stats.Live && read(t, c, "northacct", "-secondary", "k") == "kept"
	})
	put(t, c, "northacct", "k", "lost")
	eventually(t, "it is at the secondary", func() bool { return read(t, c, "northacct", "-secondary", "k") == "lost" })

	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != left {
			require.NoError(t, c.stopNode(t.Context(), North, id))
		}
	}
	require.NoError(t, c.startNode(t.Context(), North, left))
	eventually(t, "the range of tables is re-formed", func() bool {
		_, err := c.recoverRange(t.Context(), North, table, lossAccepted)
		return err == nil
	})
	for id := geo.NodeID(1); id <= nodesPerLocation; id++ {
		if id != left {
			require.NoError(t, c.startNode(t.Context(), North, id))
		}
	}
	putEventually(t, c, "northacct", "after")
	a, err := c.locations[North].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, before.GeoEpoch(), a.GeoEpoch())
	require.True(t, a.Copying(), "the range had lost the epoch")

	resolve(t, c, "northacct", South)
	for _, suffix := range []string{"", "-secondary"} {
		require.Equal(t, "lost", read(t, c, "northacct", suffix, "k"), suffix)
	}
	require.Equal(t, map[string]string{"k": "after"}, foundValues(t, c, North, "northacct"))
}
