package blobs

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/feature"
)

// second is a second of commit times.
const second = geo.Timestamp(geo.TicksPerSecond)

func acquire(id lease.ID, seconds uint32) *LeaseBlob {
	return &LeaseBlob{Command: Command{Name: testName("a")}, Request: lease.Request{Action: lease.Acquire, ID: id, Seconds: seconds}}
}

// Every write of a blob needs the ID while its lease is locked, and keeps the lease; after its end no ID is needed, and the
// lease is forgotten. A Put Block of a blob that does not exist passes without one. A lease leaves ETag and content.
func TestWritesUnderALease(t *testing.T) {
	id, other := lease.ID{1}, lease.ID{2}
	under := func(l *lease.ID) Command {
		return Command{Name: testName("a"), Guard: Guard{Lease: l, LeaseNeeded: true}}
	}
	writes := map[string]func(l *lease.ID) services.Write{
		"PutBlob": func(l *lease.ID) services.Write {
			return &PutBlob{Command: under(l), Blob: Blob{Length: 1, Inline: []byte("z")}}
		},
		"PutBlockList": func(l *lease.ID) services.Write { return &PutBlockList{Command: under(l)} },
		"PutBlock": func(l *lease.ID) services.Write {
			return &PutBlock{Command: under(l), ID: "aa", Block: Block{Length: 1, Inline: []byte("z")}}
		},
		"SetMetadata":   func(l *lease.ID) services.Write { return &SetMetadata{Command: under(l)} },
		"SetProperties": func(l *lease.ID) services.Write { return &SetProperties{Command: under(l)} },
		"DeleteBlob":    func(l *lease.ID) services.Write { return &DeleteBlob{Command: under(l)} },
	}
	for name, write := range writes {
		s := &scanned{state: state{}}
		require.ErrorIs(t, s.commit(t, acquire(id, 15), second), storageerr.BlobNotFound)
		require.NoError(t, s.commit(t, put("a", "x"), 2*second))
		require.NoError(t, s.commit(t, acquire(id, 15), 3*second))
		b, err := GetBlob(s, testName("a"))
		require.NoError(t, err)
		require.Equal(t, 2*second, b.Modified, "an action leaves the ETag")
		require.Equal(t, "x", string(b.Inline))

		require.ErrorIs(t, s.commit(t, write(nil), 4*second), storageerr.LeaseIDMissing, name)
		require.ErrorIs(t, s.commit(t, write(&other), 4*second), storageerr.LeaseMismatchOnBlob, name)
		require.ErrorIs(t, s.commit(t, write(&id), 18*second), storageerr.LeaseLost, name)
		kept := s.copied()
		require.NoError(t, s.commit(t, write(&id), 18*second-1), name)
		if after, err := GetBlob(s, testName("a")); name != "DeleteBlob" {
			require.NoError(t, err)
			require.Equal(t, lease.Leased, after.Lease.State(18*second-1), name)
			require.Equal(t, lease.Expired, after.Lease.State(18*second), name)
		}
		require.NoError(t, kept.commit(t, write(nil), 18*second), name)
		if after, err := GetBlob(kept, testName("a")); name != "DeleteBlob" && name != "PutBlock" {
			require.NoError(t, err)
			require.Zero(t, after.Lease, name)
			row, _, err := kept.Get(testName("a").key())
			require.NoError(t, err)
			require.EqualValues(t, rowVersion, row[0], "the row is as before there were leases")
		}
	}
}

func (s *scanned) copied() *scanned {
	out := &scanned{state: state{}}
	for k, v := range s.state {
		out.state[k] = slices.Clone(v)
	}
	return out
}

// Only a deletion of a leased container needs the ID; others may name it, and no other one. A lease leaves its ETag.
func TestContainerUnderALease(t *testing.T) {
	id, other := lease.ID{1}, lease.ID{2}
	s := state{}
	create := &catalog.Create{Service: geo.Blob, Account: "acct", Name: "c-1"}
	create.InEpoch(1)
	require.NoError(t, s.commit(t, create, second))
	do := func(r lease.Request, at geo.Timestamp) error {
		w := &LeaseContainer{SetLease: catalog.SetLease{Account: "acct", Name: "c-1", Request: r}}
		return s.commit(t, w, at)
	}
	require.NoError(t, do(lease.Request{Action: lease.Acquire, ID: id}, 2*second))
	require.ErrorIs(t, do(lease.Request{Action: lease.Acquire, ID: other}, 3*second), storageerr.LeaseAlreadyPresent)
	c, err := catalog.GetContainer(s, geo.Blob, "acct", "c-1")
	require.NoError(t, err)
	require.Equal(t, second, c.Modified)

	set := func(l *lease.ID) error {
		return s.commit(t, &SetContainerMetadata{
			SetMetadata: catalog.SetMetadata{Service: geo.Blob, Account: "acct", Name: "c-1"}, Guard: Guard{Lease: l},
		}, 4*second)
	}
	require.NoError(t, set(nil))
	require.NoError(t, set(&id))
	require.ErrorIs(t, set(&other), storageerr.LeaseMismatchOnContainer)
	remove := func(l *lease.ID) error {
		return s.commit(t, &DeleteContainer{
			Delete: catalog.Delete{Service: geo.Blob, Account: "acct", Name: "c-1"}, Guard: Guard{Lease: l, LeaseNeeded: true},
		}, 5*second)
	}
	require.ErrorIs(t, remove(nil), storageerr.LeaseIDMissing)
	require.ErrorIs(t, remove(&other), storageerr.LeaseMismatchOnContainer)
	require.NoError(t, remove(&id))
	require.ErrorIs(t, do(lease.Request{Action: lease.Release, ID: id}, 6*second), storageerr.ContainerNotFound)
}

// Which actions are taken while the disk is nearly full.
func TestLeaseNeeds(t *testing.T) {
	for _, action := range []lease.Action{lease.Acquire, lease.Renew, lease.Change, lease.Release, lease.Break} {
		r := lease.Request{Action: action}
		deletes := action == lease.Break || action == lease.Release
		for _, w := range []services.Write{&LeaseBlob{Request: r}, &LeaseContainer{SetLease: catalog.SetLease{Request: r}}} {
			require.Equal(t, deletes, w.(services.Deletion).Deletes(), "%T %d", w, action)
		}
	}
}

// A row that an earlier program cannot read has its feature level, and a row that it can read has
// none.
func TestEffectLevel(t *testing.T) {
	id := lease.ID{1}
	s := &scanned{state: state{}}
	level := func(w services.Write, at geo.Timestamp) feature.Level {
		if timed, ok := w.(services.Timed); ok {
			timed.InTime(at)
		}
		e, err := w.Evaluate(s, at)
		require.NoError(t, err)
		require.NoError(t, s.commit(t, w, at))
		return max(e.Level, feature.Base)
	}
	container := func(r lease.Request) services.Write {
		return &LeaseContainer{SetLease: catalog.SetLease{Account: "acct", Name: "c-1", Request: r}}
	}
	create := &catalog.Create{Service: geo.Blob, Account: "acct", Name: "c-1"}
	create.InEpoch(1)
	require.Equal(t, feature.Base, level(create, second))
	require.Equal(t, feature.Blobs, level(container(lease.Request{Action: lease.Acquire, ID: id}), 2*second))
	require.Equal(t, feature.Base, level(container(lease.Request{Action: lease.Release, ID: id}), 2*second))
	require.Equal(t, feature.Base, level(put("a", "x"), 2*second))
	require.Equal(t, feature.Blobs, level(acquire(id, 15), 3*second))
	require.Equal(t, feature.Blobs, level(&SetMetadata{Command: Command{Name: testName("a"), Guard: Guard{Lease: &id}}}, 4*second))
	require.Equal(t, feature.Base, level(put("a", "x"), 20*second), "the lease is over, and forgotten")
	require.Equal(t, feature.Blobs, level(acquire(id, 15), 30*second))
	release := acquire(id, 0)
	release.Request.Action = lease.Release
	require.Equal(t, feature.Base, level(release, 31*second))
}

// A field that is longer than its lease is refused, and so is another tag, and a number of fields that is not theirs.
func TestMalformedFields(t *testing.T) {
	b := goldenBlobs()[6]
	row, err := appendRow(nil, &b)
	require.NoError(t, err)
	start := []byte{1, tagLease, 29}
	at := bytes.Index(row, start)
	require.Positive(t, at)
	for _, other := range [][]byte{{1, tagLease, 30, 0}, {1, tagLease + 1, 29}, {2, tagLease, 29}, {0, tagLease, 29}, {1, tagLast + 1, 29}} {
		_, err := parseRow(slices.Concat(row[:at], other, row[at+len(start):]))
		require.ErrorIs(t, err, ErrMalformed, "%v", other)
		require.Equal(t, other[1] > tagLast, errors.Is(err, feature.ErrLater), "%v", other)
	}
}
