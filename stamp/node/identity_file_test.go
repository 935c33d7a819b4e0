package node_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/membership"
	. "antipode/stamp/node"
	"antipode/stamp/state"
)

// unreadable is a file system that fails to open identity files.
type unreadable struct {
	vfs.FS
	err error
}

func (fs unreadable) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if strings.Contains(name, "/replicas/") {
		return nil, fs.err
	}
	return fs.FS.Open(name, opts...)
}

// The error of a node whose identity files are damaged advises to move its folder away. That of a node
// that only cannot read them does not: the data in the folder may be intact.
func TestAdviceAboutIdentityFiles(t *testing.T) {
	fs := vfs.NewMem()
	open := func(fs vfs.FS) (*Node, error) {
		return Open(Options{
			Location: "here", ID: 1, Peers: []geo.NodeID{1, 2, 3}, Dir: "n", State: state.Options{FS: fs},
			Clock:     clock.NewManual(time.Unix(1_700_000_000, 0)),
			Transport: &lone{peers: map[geo.NodeID]ChunkPeer{}}, Logger: slog.New(slog.DiscardHandler),
		})
	}
	n, err := open(fs)
	require.NoError(t, err)
	require.NoError(t, n.Close(true))

	denied := errors.New("input/output error")
	_, err = open(unreadable{fs, denied})
	require.ErrorIs(t, err, denied)
	require.NotContains(t, err.Error(), "move n away")

	list, err := fs.List("n/replicas")
	require.NoError(t, err)
	for _, name := range list {
		f, err := fs.Create("n/replicas/"+name, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.Write([]byte("damaged"))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	_, err = open(fs)
	require.ErrorIs(t, err, membership.ErrIdentity)
	require.ErrorContains(t, err, "move n away")
}
