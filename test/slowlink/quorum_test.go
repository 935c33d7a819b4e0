package slowlink

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/membership"
	"antipode/test/faults/rig"
)

// One of the four ranges of the secondary has no quorum under load: two of its replicas are marked as lost in
// the folders of their nodes. The lag of the others is what it was. The replicas stay lost: one that is
// trusted again is what R4 forbids, and the others may have removed it.
func TestOneRangeWithoutQuorum(t *testing.T) {
	r := start(t)
	ctx := t.Context()
	begin(t, r)
	rig.Pause(ctx, min(*duration, warm))
	quiet, _ := watch(ctx, t, r, max(*duration/4, 5*time.Second))
	south := rig.NodesOf(rig.South)
	for _, name := range south[1:] {
		require.NoError(t, r.Kill(name))
		file := identityOf(r, name, geo.Table)
		was, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, withPhase(t, was, membership.Lost), 0o600))
	}
	for _, name := range south[1:] {
		require.NoError(t, r.Launch(name))
	}
	requireLeaders(ctx, t, r, geo.Table)
	waitBlobs(ctx, t, r)
	standing, memory := watch(ctx, t, r, *duration)
	blobs, table := geo.Blob.String(), geo.Table.String()
	t.Logf("quiet: lag %v", quiet)
	t.Logf("the tables without quorum for %v: lag %v; memory at first, and growth in MiB:%v", *duration, standing, memory)
	require.NotEmpty(t, standing.of[blobs])
	if of := standing.of[table]; len(of) > 0 {
		require.GreaterOrEqual(t, quantile(of, 1), *duration*9/10, "the tables had a quorum")
	}
	if strict() {
		require.LessOrEqual(t, quantile(standing.of[blobs], .99), 2*quantile(quiet.of[blobs], .99))
	}
}

// identityOf is the file that says how far a node's replica of a range can be trusted
// (docs/format/identity.md).
func identityOf(r *rig.Rig, name string, s geo.Service) string {
	found, err := filepath.Glob(filepath.Join(r.Dir(), name, "data", "*", "*", "replicas", fmt.Sprintf("r%d", rangeOf(s))))
	if err != nil || len(found) != 1 {
		panic(fmt.Sprintf("identity of %v at %s: %v, %v", s, name, found, err))
	}
	return found[0]
}

// rangeOf is the range of a service: there is one (docs/limits.md).
func rangeOf(s geo.Service) geo.RangeID {
	for id := geo.RangeID(1); ; id++ {
		if geo.Service(id) == s {
			return id
		}
	}
}

// withPhase sets the phase in both copies of an identity.
func withPhase(t *testing.T, was []byte, p membership.Phase) []byte {
	t.Helper()
	const second = 8192
	out := bytes.Clone(was)
	for _, at := range []int{0, second} {
		length := 27 + 16*int(out[at+26])
		require.Equal(t, crc.Of(out[at:at+length]), binary.LittleEndian.Uint32(out[at+length:]))
		out[at+1] = byte(p)
		binary.LittleEndian.PutUint32(out[at+length:], crc.Of(out[at:at+length]))
	}
	return out
}

// requireLeaders waits until every range of the secondary but one has a leader, and that one has none.
func requireLeaders(ctx context.Context, t *testing.T, r *rig.Rig, without geo.Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for {
		views, err := r.Views(ctx, rig.South)
		good := err == nil && len(views) == 4
		for _, v := range views {
			good = good && (v.LeaderView == nil) == (v.Service == without.String())
		}
		if good {
			return
		}
		require.NoError(t, ctx.Err(), "ranges of the secondary: %v, %v", views, err)
		rig.Pause(ctx, poll)
	}
}

// waitBlobs waits until the blobs at the secondary are where they are at rest.
func waitBlobs(ctx context.Context, t *testing.T, r *rig.Rig) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for {
		l := lagNow(ctx, r)
		if of := l.of[geo.Blob.String()]; len(of) > 0 && quantile(of, 1) < time.Second {
			return
		}
		require.NoError(t, ctx.Err(), "lag %v", l)
		rig.Pause(ctx, lagEvery)
	}
}
