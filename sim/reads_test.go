package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/blobs"
)

// A blob lacks rows that an image has left out since its container is deleted: that breaks no promise at a location to which
// its account has moved, and does anywhere else.
func TestRowsOfADeletedContainerMayBeLeftOut(t *testing.T) {
	look := func(deleted bool, moved int) error {
		s := &Sim{log: newEventLog(nil)}
		l := &location{s: s, name: "north"}
		a := &account{name: "acct", home: l, moved: moved, containers: map[geo.Service][]*container{}}
		c := &container{account: a, service: geo.Blob, name: "c", deleted: deleted}
		a.containers[geo.Blob] = []*container{c}
		s.accounts = []*account{a}
		s.ops = []*op{{account: a, write: &blobs.PutBlob{}, after: &blobContent{bytes: []byte("content")}}}
		s.checkContent(&member{l: l}, c.partition("b"), map[string]string{lastRow: "0 -1"})
		return s.err
	}
	require.NoError(t, look(true, 1))
	require.ErrorIs(t, look(false, 1), ErrContent)
	require.ErrorIs(t, look(true, 0), ErrContent)
}
