package blobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
)

// state is the keys of one range; it implements kv.Getter.
type state map[string][]byte

func (s state) Get(key []byte) ([]byte, bool, error) {
	v, ok := s[string(key)]
	return v, ok, nil
}

// commit evaluates a write at a time and applies its effect.
func (s state) commit(t *testing.T, w services.Write, at geo.Timestamp) error {
	t.Helper()
	if timed, is := w.(services.Timed); is {
		timed.InTime(at)
	}
	e, err := w.Evaluate(s, at)
	if err != nil {
		require.Empty(t, e.Ops, "an error has an effect")
		return err
	}
	for _, op := range e.Ops {
		k := string(w.Partition().Append(nil)) + string(op.Row)
		if op.Delete {
			delete(s, k)
		} else {
			s[k] = op.Value
		}
	}
	return nil
}

func testName(blob string) Name {
	return Name{Account: "acct", Container: "c-1", Generation: keys.Generation{Epoch: 1, Created: 7}, Blob: blob}
}

func put(blob, content string) *PutBlob {
	return &PutBlob{Command: Command{Name: testName(blob)}, Blob: Blob{Length: uint64(len(content)), Inline: []byte(content)}}
}

// The life of a blob: made, read, replaced as a whole, deleted. Times are those of
// the last commit, and nothing of the old content stays.
func TestPutReplaceDelete(t *testing.T) {
	s := state{}
	_, err := GetBlob(s, testName("a"))
	require.ErrorIs(t, err, storageerr.BlobNotFound)

	first := put("a", "one")
	first.Blob.Metadata = []Pair{{Name: "k", Value: "v"}}
	first.Blob.Tier = TierCool
	require.NoError(t, s.commit(t, first, 10))
	require.Equal(t, geo.Timestamp(10), first.Modified)
	got, err := GetBlob(s, testName("a"))
	require.NoError(t, err)
	require.Equal(t, Blob{Modified: 10, Created: 10, Length: 3, Tier: TierCool, Metadata: []Pair{{Name: "k", Value: "v"}}, Inline: []byte("one")}, got)

	require.NoError(t, s.commit(t, put("a", "second"), 20))
	got, err = GetBlob(s, testName("a"))
	require.NoError(t, err)
	require.Equal(t, Blob{Modified: 20, Created: 20, Length: 6, Tier: TierCool, Inline: []byte("second")}, got)

	_, err = GetBlob(s, testName("b"))
	require.ErrorIs(t, err, storageerr.BlobNotFound)
	require.NoError(t, s.commit(t, &DeleteBlob{Command: Command{Name: testName("a")}}, 30))
	require.Empty(t, s)
	require.ErrorIs(t, s.commit(t, &DeleteBlob{Command: Command{Name: testName("a")}}, 40), storageerr.BlobNotFound)
	require.ErrorIs(t, put("a", "").Gone(), storageerr.ContainerNotFound)
}

// The chunks that a row names are named by its change (R3, R9).
func TestPutNamesItsChunks(t *testing.T) {
	refs := []extent.Ref{{ID: extent.ChunkID{1}, Length: 9, CRC: 3}}
	w := &PutBlob{Command: Command{Name: testName("a")}, Blob: Blob{Length: 9, Chunks: refs}}
	e, err := w.Evaluate(state{}, 10)
	require.NoError(t, err)
	require.Equal(t, refs, e.Chunks)
	again, err := w.Evaluate(state{}, 12)
	require.NoError(t, err)
	require.NotEqual(t, e.Ops, again.Ops, "evaluated again at another time")
	require.Equal(t, geo.Timestamp(12), w.Modified)
}

// asked records what the conditions of a write were asked.
type asked struct {
	creates, exists bool
	modified        geo.Timestamp
	answer          error
}

func (a *asked) Read(modified geo.Timestamp) error {
	a.exists, a.modified = true, modified
	return a.answer
}

func (a *asked) Write(creates, exists bool, modified geo.Timestamp) error {
	a.creates, a.exists, a.modified = creates, exists, modified
	return a.answer
}

// Conditions see the blob as it is at evaluation, and one that fails changes nothing;
// a missing blob comes before the conditions of a delete; a lease after them.
func TestConditions(t *testing.T) {
	s := state{}
	c := &asked{}
	w := put("a", "x")
	w.Conditions = c
	require.NoError(t, s.commit(t, w, 10))
	require.Equal(t, asked{creates: true}, *c)

	c.answer = storageerr.ConditionNotMet
	w = put("a", "y")
	w.Conditions, w.Lease = c, &lease.ID{}
	require.ErrorIs(t, w.Admit(s, 20), storageerr.ConditionNotMet)
	require.ErrorIs(t, s.commit(t, w, 20), storageerr.ConditionNotMet)
	require.Equal(t, asked{true, true, 10, c.answer}, *c)
	require.ErrorIs(t, s.commit(t, &DeleteBlob{Command: Command{Name: testName("a"), Guard: Guard{Conditions: c}}}, 20), storageerr.ConditionNotMet)
	require.Equal(t, asked{false, true, 10, c.answer}, *c)
	require.ErrorIs(t, s.commit(t, &DeleteBlob{Command: Command{Name: testName("b"), Guard: Guard{Conditions: c}}}, 20), storageerr.BlobNotFound)

	c.answer = nil
	require.ErrorIs(t, s.commit(t, w, 20), storageerr.LeaseNotPresentOnBlob)
	require.ErrorIs(t, s.commit(t, &DeleteBlob{Command: Command{Name: testName("a"), Guard: Guard{Lease: &lease.ID{}}}}, 20), storageerr.LeaseNotPresentOnBlob)
	got, err := GetBlob(s, testName("a"))
	require.NoError(t, err)
	require.Equal(t, "x", string(got.Inline))
}

// A read is tested under the conditions of reads, then for the lease; without either it passes.
func TestGuardOfRead(t *testing.T) {
	c := &asked{answer: storageerr.NotModified}
	g := Guard{Conditions: c, Lease: &lease.ID{}}
	require.ErrorIs(t, g.Check(State{Modified: 7}, 9, lease.OfBlob()), storageerr.NotModified)
	require.Equal(t, asked{exists: true, modified: 7, answer: c.answer}, *c)
	c.answer = nil
	require.ErrorIs(t, g.Check(State{Modified: 7}, 9, lease.OfBlob()), storageerr.LeaseNotPresentOnBlob)
	require.NoError(t, (&Guard{Conditions: c}).Check(State{Modified: 7}, 9, lease.OfBlob()))
	require.NoError(t, (&Guard{}).Check(State{Modified: 7}, 9, lease.OfBlob()))
}

// A container is deleted under its conditions or not at all.
func TestDeleteContainer(t *testing.T) {
	s := state{}
	create := &catalog.Create{Service: geo.Blob, Account: "acct", Name: "c-1"}
	create.InEpoch(1)
	require.NoError(t, s.commit(t, create, 10))
	c := &asked{answer: storageerr.ConditionNotMet}
	d := &DeleteContainer{Delete: catalog.Delete{Service: geo.Blob, Account: "acct", Name: "c-1"}, Guard: Guard{Conditions: c}}
	require.ErrorIs(t, s.commit(t, d, 20), storageerr.ConditionNotMet)
	require.Equal(t, asked{false, true, 10, c.answer}, *c)
	c.answer = nil
	require.NoError(t, s.commit(t, d, 20))
	require.ErrorIs(t, s.commit(t, d, 30), storageerr.ContainerNotFound)
}
