package membership

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/durable"
	"antipode/stamp/feature"
	"antipode/stamp/replica"
)

// An identity stays what docs/format/identity.md shows; any other bytes are refused: a
// node must not guess who it is (R4).
func TestIdentity(t *testing.T) {
	d := Identity{Phase: Recovering, Replica: 4, Nonce: 7, Floor: 9, Peers: map[geo.NodeID]Nonce{1: 5, 2: 6}}
	b := d.encode([]geo.NodeID{1, 2, 3})
	require.Equal(t, "0205040000000000000007000000000000000900000000000000"+
		"020100000000000000050000000000000002000000000000000600000000000000"+"0d01da01", hex.EncodeToString(b))
	got, err := parseIdentity(b)
	require.NoError(t, err)
	require.Equal(t, &d, got)
	for i := range b {
		_, err := parseIdentity(b[:i])
		require.ErrorIs(t, err, ErrIdentity)
		flipped := bytes.Clone(b)
		flipped[i] ^= 4
		_, err = parseIdentity(flipped)
		require.ErrorIs(t, err, ErrIdentity)
	}

	file := durable.Twice(d.encode([]geo.NodeID{1, 2, 3}))
	require.Equal(t, b, file[:len(b)])
	require.Equal(t, b, file[durable.SecondCopy:])
	for _, at := range []int{0, 1, len(b) - 1, len(b), durable.SecondCopy, len(file) - 1} {
		file[at] ^= 4
		got, err := durable.ParseTwice(file, parseIdentity)
		require.NoError(t, err, "one copy is damaged at %d", at)
		require.Equal(t, &d, got)
		file[at] ^= 4
	}
	file[3], file[durable.SecondCopy+3] = 0xff, 0xff
	_, err = durable.ParseTwice(file, parseIdentity)
	require.ErrorIs(t, err, ErrIdentity)
	got, err = durable.ParseTwice(b, parseIdentity)
	require.NoError(t, err, "a file from before there was a second copy")
	require.Equal(t, &d, got)
}

// R4: an identity or a placement of a later version is no damage, for which the node would be rebuilt: it is refused by
// that name. One damaged copy whose first byte looks like one is passed over.
//
// Capability: Two locations: A folder names its node, stamp and use, and is refused to another one (R4).
// Capability: Two locations: Two versions at once.
func TestR4LaterIdentity(t *testing.T) {
	seal := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, crc.Of(b)) }
	later := seal([]byte{identityVersion + 1, 1, 2, 3})
	_, err := durable.ParseTwice(durable.Twice(later), parseIdentity)
	require.ErrorIs(t, err, feature.ErrLater)
	require.NotErrorIs(t, err, ErrIdentity)
	_, err = ReadPlacement(durable.Twice(seal([]byte{placementVersion + 1, 9})))
	require.ErrorIs(t, err, feature.ErrLater)
	require.NotErrorIs(t, err, ErrPlacement)

	d := Identity{Phase: Forgotten + 1, Replica: 4, Nonce: 7}
	_, err = durable.ParseTwice(durable.Twice(d.encode(nil)), parseIdentity)
	require.ErrorIs(t, err, feature.ErrLater)

	d.Phase = Member
	file := durable.Twice(d.encode(nil))
	file[0]++
	_, err = durable.ParseTwice(file, parseIdentity)
	require.NoError(t, err)
}

// A log keeps what a rebuilt replica lacks: the durable index of the replica that its node had before does not count, however
// late its reports arrive. A node without a replica needs all of it; one of an earlier version names none.
func TestDurableIndexIsOfAReplica(t *testing.T) {
	before, rebuilt := DurableIndex{Replica: 2, Index: 500}, DurableIndex{Replica: 4, Index: 100}
	require.Equal(t, rebuilt, rebuilt.Latest(before))
	require.Equal(t, rebuilt, before.Latest(rebuilt))
	require.Equal(t, rebuilt, DurableIndex{Replica: 4, Index: 90}.Latest(rebuilt))
	require.Equal(t, before, before.Latest(DurableIndex{}))

	members := replica.Members{List: []replica.Member{{ID: 1, Node: 1}, {ID: 4, Node: 2}}}
	require.EqualValues(t, 100, rebuilt.Of(members, 2))
	require.Zero(t, before.Of(members, 2))
	require.Zero(t, before.Of(members, 3))
	require.EqualValues(t, 7, DurableIndex{Index: 7}.Of(members, 2))
}
