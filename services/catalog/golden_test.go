package catalog

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/lease"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden file")

const goldenPath = "testdata/rows.golden"

func goldenAccount() *Account {
	return &Account{
		Name: "pictures", Key1: bytes.Repeat([]byte{1}, 4), Key2: bytes.Repeat([]byte{2}, 4), Redundancy: RAGRS,
		Primary: "northcentralus", Secondary: "southcentralus", Epoch: 1, Created: 0x1122334455667788, Active: true,
	}
}

// goldenReservation is an incomplete account as the location that reserved its name keeps it.
func goldenReservation() *Account {
	a := goldenAccount()
	a.Active, a.Reserved = false, 0x1122334455667799
	return a
}

// goldenAlone is an account without a secondary that the other location does not know yet.
func goldenAlone() *Account {
	a := goldenAccount()
	a.SetRedundancy(LRS, "southcentralus")
	a.Operation = &Operation{Kind: OperationAnnounce}
	return a
}

// goldenSlowed is an account that slows its writes while changes are late.
func goldenSlowed() *Account {
	a := goldenAccount()
	a.WhenLate = LateSlow
	return a
}

// goldenOffered is an account that is offered to its secondary.
func goldenOffered() *Account {
	a := goldenAccount()
	a.Turn, a.LastFailover, a.Copied = 1, 0x1122334455667790, 0x1122334455667791
	a.Operation = &Operation{Kind: OperationMove, Move: Move{Phase: MoveOffered, Until: 0x1122334455667799, Claim: 2}}
	return a
}

var goldenMade = time.Unix(1_700_000_000, 1).UTC()

var goldenEpoch = geo.Epoch{Number: 3, Location: "northcentralus"}

func goldenContainers() []*Container {
	return []*Container{
		{Name: "Customers", Epoch: 1, Created: 4, Modified: 4},
		{
			Name: "photos", Epoch: 2, Created: 6, Modified: 8, Deleted: 10,
			Metadata: []Pair{{"one", "1"}, {"two", ""}}, PublicAccess: "blob",
		},
		{
			Name: "leased", Epoch: 1, Created: 4, Modified: 4,
			Lease: lease.Lease{Kind: lease.KindTaken, ID: lease.ID{1, 15: 2}, Seconds: 60, Until: 0x1122334455667788},
		},
	}
}

// The stored form never changes: rows written today equal the golden file, and the
// golden file still reads (docs/format/catalog.md).
func TestGolden(t *testing.T) {
	account, err := goldenAccount().Encode()
	require.NoError(t, err)
	rows := []string{string(account)}
	reservation, err := goldenReservation().Encode()
	require.NoError(t, err)
	epoch, err := SeenOp(goldenEpoch)
	require.NoError(t, err)
	rows = append(rows, string(reservation), string(epoch.Value))
	for _, c := range goldenContainers() {
		row, err := c.encode()
		require.NoError(t, err)
		rows = append(rows, string(row))
	}
	alone, err := goldenAlone().Encode()
	require.NoError(t, err)
	rows = append(rows, string(alone))
	slowed, err := goldenSlowed().Encode()
	require.NoError(t, err)
	made, err := StreamOp("northcentralus", goldenMade)
	require.NoError(t, err)
	require.Equal(t, "northcentralus", string(made.Row))
	offered, err := goldenOffered().Encode()
	require.NoError(t, err)
	rows = append(rows, string(slowed), string(offered), string(made.Value))
	got := strings.Join(rows, "\n") + "\n"
	if *rewrite {
		require.NoError(t, os.WriteFile(goldenPath, []byte(got), 0o644))
	}
	want, err := os.ReadFile(goldenPath)
	require.NoError(t, err)
	require.Equal(t, string(want), got)

	lines := strings.Split(strings.TrimSpace(string(want)), "\n")
	a, err := ParseAccount([]byte(lines[0]))
	require.NoError(t, err)
	want1 := goldenAccount()
	want1.Version = formatVersion
	require.Equal(t, want1, a)
	a, err = ParseAccount([]byte(lines[1]))
	require.NoError(t, err)
	want1 = goldenReservation()
	want1.Version = formatVersion
	require.Equal(t, want1, a)
	e, err := parseSeen([]byte(lines[2]))
	require.NoError(t, err)
	require.Equal(t, goldenEpoch, e)
	stream, err := parseStream([]byte(lines[len(lines)-1]))
	require.NoError(t, err)
	require.Equal(t, goldenMade, stream)
	last := len(lines) - 4
	a, err = ParseAccount([]byte(lines[last]))
	require.NoError(t, err)
	want1 = goldenAlone()
	want1.Version = formatVersion
	require.Equal(t, want1, a)
	a, err = ParseAccount([]byte(lines[last+1]))
	require.NoError(t, err)
	want1 = goldenSlowed()
	want1.Version = formatVersion
	require.Equal(t, want1, a)
	a, err = ParseAccount([]byte(lines[last+2]))
	require.NoError(t, err)
	want1 = goldenOffered()
	want1.Version = formatVersion
	require.Equal(t, want1, a)
	for i, line := range lines[3:last] {
		c, err := ParseContainer([]byte(line))
		require.NoError(t, err)
		want := goldenContainers()[i]
		want.Version = formatVersion
		require.Equal(t, want, c)
	}
}

// A row of another version is refused, not misread.
func TestUnknownVersion(t *testing.T) {
	_, err := ParseAccount([]byte(`{"v":2,"name":"pictures"}`))
	require.ErrorContains(t, err, "version 2")
	_, err = parseSeen([]byte(`{"v":2,"epoch":1}`))
	require.ErrorContains(t, err, "version 2")
	_, err = parseStream([]byte(`{"v":2,"made":"2026-11-23T16:00:00Z"}`))
	require.ErrorContains(t, err, "version 2")
	_, err = ParseContainer([]byte(`{"v":2,"name":"photos"}`))
	require.ErrorContains(t, err, "version 2")
}

// The keys of one service's containers stand together, and names of tables match
// without case (protocol/table.md 1.3).
func TestContainerPartition(t *testing.T) {
	require.Equal(t, ContainerPartition(geo.Table, "pictures", "Customers"), ContainerPartition(geo.Table, "pictures", "CUSTOMERS"))
	require.NotEqual(t, ContainerPartition(geo.Table, "pictures", "photos"), ContainerPartition(geo.Blob, "pictures", "photos"))
}

// A lease that no action leaves is refused.
func TestMalformedLease(t *testing.T) {
	for _, l := range []string{`{"kind":3,"id":"01000000-0000-0000-0000-000000000002"}`, `{"kind":1,"id":"x"}`, `{"kind":2,"id":"01000000-0000-0000-0000-000000000002"}`} {
		_, err := ParseContainer([]byte(`{"v":1,"name":"n","epoch":1,"created":4,"modified":4,"lease":` + l + `}`))
		require.Error(t, err, l)
	}
}
