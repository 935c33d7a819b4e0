package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
	"antipode/test/rest"
)

// A clone of an account in node processes: whichever node of the secondary location has it, the gateway and every front end
// of that location serve it, payload included, and those of the other location answer as for an account that does not exist.
// The account goes on beside it. When its process is killed the clone is gone, and so are its files after the next start.
//
// Capability: Failover: A drill on a clone.
func TestCloneInACluster(t *testing.T) {
	d := startCluster(t)
	ctx, cancel := contextFor(t, 2*clusterWait)
	defer cancel()
	payload := bytes.Repeat([]byte("payload "), 16<<10)
	d.createTable()
	d.acknowledged(d.gateway(false), "before", 1)
	eventually(t, clusterWait, "a blob is put", func(ctx context.Context) error {
		err := d.gateway(false).CreateContainer(ctx, "cluster")
		if err != nil {
			return err
		}
		a, err := d.gateway(false).PutBlob(ctx, "cluster", "blob", payload)
		if err == nil && !a.OK() {
			err = fmt.Errorf("%v", a)
		}
		return err
	})
	eventually(t, clusterWait, "both arrive", func(ctx context.Context) error {
		if _, a, err := read(ctx, d.gateway(true), "before"); err != nil || !a.OK() {
			return errors.Join(fmt.Errorf("%v", a), err)
		}
		a, err := d.gateway(true).GetBlob(ctx, "cluster", "blob")
		if err == nil && !a.OK() {
			err = fmt.Errorf("%v", a)
		}
		return err
	})

	var clone admin.Clone
	eventually(t, clusterWait, "a clone opens", func(ctx context.Context) (err error) {
		if clone, err = d.Admin().Clone(ctx, rest.DevAccount); err != nil { // None that a call before has opened after all.
			clone, err = d.Admin().OpenClone(ctx, rest.DevAccount, admin.OpenClone{})
		}
		return err
	})
	require.Equal(t, south, clone.Location)
	requirePrivate(t, d.Dir)
	t.Logf("opened on %s in %.1f s", clone.Node, clone.TookSeconds)
	_, host, err := admin.ParseNodeName(clone.Node)
	require.NoError(t, err)
	at := func(portBase int) *rest.Client {
		return rest.NewPathStyleOf(d.hc, rest.DevAccount+geo.CloneSuffix, portBase, false)
	}
	ends := []*rest.Client{at(d.PortBase)}
	for number := range 3 {
		ends = append(ends, at(d.NodePorts(1, number).Base))
		_, a, err := read(ctx, at(d.NodePorts(0, number).Base), "before")
		require.NoError(t, err)
		require.Equal(t, http.StatusForbidden, a.Status, "%v", a)
	}
	d.acknowledged(d.gateway(false), "after", 2)
	for i, c := range ends {
		require.EqualValues(t, 1+i*10, d.reads(c, "before")) // A node that is asked first may not know yet who has the clone.
		a, err := c.GetBlob(ctx, "cluster", "blob")
		require.NoError(t, err)
		require.True(t, bytes.Equal(payload, a.Body), "%v", a)
		a, err = put(ctx, c, "before", 1+(i+1)*10)
		require.NoError(t, err)
		require.True(t, a.OK(), "%v", a)
		_, a, err = read(ctx, c, "after")
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, a.Status, "%v", a)
	}
	require.EqualValues(t, 1, d.reads(d.gateway(false), "before"))
	_, err = d.Admin().OpenClone(ctx, rest.DevAccount, admin.OpenClone{})
	require.ErrorContains(t, err, "has a clone already")

	d.signal(1, int(host)-1, syscall.SIGKILL)
	eventually(t, clusterWait, "the clone is gone", func(ctx context.Context) error {
		_, a, err := read(ctx, at(d.PortBase), "before")
		if err == nil && a.Status != http.StatusForbidden {
			err = fmt.Errorf("%v", a)
		}
		return err
	})
	files := filepath.Join(d.Dir, clone.Node, "data", string(south), clone.Node, "clones", "*")
	left, err := filepath.Glob(files)
	require.NoError(t, err)
	require.NotEmpty(t, left)
	d.start()
	left, err = filepath.Glob(files)
	require.NoError(t, err)
	require.Empty(t, left)
	eventually(t, clusterWait, "a clone opens again", func(ctx context.Context) error { // The node that started has to join first.
		_, err := d.Admin().OpenClone(ctx, rest.DevAccount, admin.OpenClone{})
		return err
	})
	dropped, err := d.Admin().DropClone(ctx, rest.DevAccount)
	require.NoError(t, err)
	require.Equal(t, "devstoreaccount1-drill", dropped.Name)
}
