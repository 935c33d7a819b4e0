package clone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/api"
	"antipode/directory"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/membership"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
	"antipode/stamp/state"
)

// memTableBytes is the size of the memtables of a clone, which are taken out of the cache of the live nodes.
const memTableBytes = 4 << 20

// reserveFactor is how much more of the disk than its host a clone leaves free.
const reserveFactor = 4

// dirName is the folder of a live node that has the files of its clones, each in a folder named for its account.
const dirName = "clones"

// Options configures a Clone. All fields are required.
type Options struct {
	Account geo.Account
	// Host is the node that the clone is made of. Live is its stamp, whose other nodes have the chunks too.
	Host *node.Node
	Live *stamp.Stamp
	// HostDir is the folder of the host.
	HostDir string
	// Node is what the clone's node has in common with the host: Location, Route, State, Clock, Seed, Parity, Tick,
	// ReserveBytes and Logger.
	Node node.Options
	// API is what the front end has in common with the others of the process.
	API  api.Options
	Data Data
}

// Clone is an open clone. Methods may be called concurrently.
type Clone struct {
	dir     string
	fs      vfs.FS
	stamp   *stamp.Stamp
	api     *api.Server
	release func()
}

// Open makes a clone of what the host has applied, and waits until it takes writes. After an error nothing is left.
func Open(ctx context.Context, o Options) (_ *Clone, err error) {
	fs := fileSystem(o.Node.State)
	dir := fs.PathJoin(o.HostDir, dirName, string(o.Account))
	// Pinned before the checkpoint: a sweep drops no chunk that the state names at that moment, and none after it.
	c := &Clone{dir: dir, fs: fs, release: o.Host.Extents().Pin()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("clone of account %s: %w", o.Account, err), c.Close())
		}
	}()
	id := o.Host.ID()
	owner := ownerOf(o.Host, o.Node.Location)
	if err := membership.Check(fs, dir, owner); err != nil {
		c.dir = "" // It is not this clone's to remove.
		return nil, err
	}
	if err := fs.RemoveAll(dir); err != nil { // Of a removal that failed.
		return nil, err
	}
	if err := membership.Claim(fs, dir, owner); err != nil {
		return nil, err
	}
	// Times in the state are ahead of the clock here by so much at most (R6).
	floor := geo.TimestampOf(o.Node.Clock.Now().Add(geo.ClockOffMax))
	if err := o.write(fs.PathJoin(dir, node.Name(o.Node.Location, id)), floor); err != nil {
		return nil, err
	}
	n := o.Node
	n.Peers, n.Dir, n.Base, n.Transport = []geo.NodeID{id}, dir, base{o.Host.Extents(), o.Live}, memtransport.New()
	n.State.StateMemTableBytes = memTableBytes
	// The clone stops taking writes long before its host would have to.
	n.ReserveBytes = reserveFactor * n.WithDefaults().ReserveBytes
	c.stamp = stamp.New(n)
	if err := c.stamp.Start(id); err != nil {
		return nil, err
	}
	for _, r := range n.Route.Ranges() {
		if err := directory.Writable(ctx, c.stamp, r.ID); err != nil {
			return nil, fmt.Errorf("its %s range takes no writes: %w", r.Service, err)
		}
	}
	c.api = o.serve(c.stamp)
	return c, nil
}

// HasEverything reports whether a clone can be made of a node: it has a trusted replica of every range, and each has had
// a leader.
func HasEverything(ctx context.Context, n *node.Node, all []geo.RangeID) bool {
	for _, id := range all {
		if n.Range(id) == nil {
			return false
		}
		if s, err := n.Survey(ctx, id); err != nil || !s.Trusted || s.Index == 0 {
			return false
		}
	}
	return true
}

// own makes the account in a clone's catalog one without a copy, whose primary is here, in an epoch above all that
// were seen. It returns its gate.
func own(s *state.Store, b *state.Batch, name geo.Account, here geo.Location) (change.Gate, error) {
	a, err := catalog.GetAccount(s, name)
	if err != nil {
		return change.Gate{}, err
	}
	p, err := catalog.GetPromotion(s, name)
	if err != nil {
		return change.Gate{}, err
	}
	switch {
	case p != nil:
		return change.Gate{}, storageerr.OperationInProgress.Saying(fmt.Sprintf("account %s: %s", name, p.Describe()))
	case !a.Active || a.Secondary != here:
		return change.Gate{}, storageerr.AccountNotFound
	case a.Operation != nil: // It began since the caller looked: the copy may be a part of one, or of another epoch.
		return change.Gate{}, storageerr.OperationInProgress.Saying(fmt.Sprintf("account %s: %s", name, a.Operation.Describe()))
	}
	seen, err := catalog.SeenEpoch(s, name)
	if err != nil {
		return change.Gate{}, err
	}
	a.Epoch, a.Primary = max(a.Epoch, seen.Number)+1, here
	a.Turn, a.Reserved = 0, 0
	a.SetRedundancy(catalog.LRS, "")
	v, err := a.Encode()
	if err != nil {
		return change.Gate{}, err
	}
	gate := change.Gate{Epoch: a.GeoEpoch(), Role: change.RolePrimary, Open: true}
	return gate, b.Set(catalog.AccountPartition(name).Append(nil), v)
}

// API is the front end of the clone.
func (c *Clone) API() *api.Server { return c.api }

// Close ends the clone and deletes its files. Requests under way fail. The host must not be closed before.
func (c *Clone) Close() error {
	var errs []error
	if c.stamp != nil {
		errs = append(errs, c.stamp.Close())
	}
	if c.dir != "" {
		errs = append(errs, c.fs.RemoveAll(c.dir))
	}
	c.release()
	return errors.Join(errs...)
}

// ownerOf is whose the folders of a node's clones are.
func ownerOf(host *node.Node, l geo.Location) membership.Owner {
	return membership.Owner{Kind: membership.Clone, Location: l, Node: host.ID(), Stamp: host.Stamp()}
}

// RemoveLeftovers deletes the files of all clones in the folder of a node that the caller has opened, and of which no clone is
// open yet: none outlives its process. Before it was opened the node could be another process's. What is another node's
// stays, with an error about each (membership.ErrOwner).
func RemoveLeftovers(o state.Options, hostDir string, host *node.Node, l geo.Location, log *slog.Logger) error {
	fs := fileSystem(o)
	dir := fs.PathJoin(hostDir, dirName)
	names, err := fs.List(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(names) > 0 {
		log.Info("clones of accounts are deleted: they end with the process that opened them", "accounts", names)
	}
	var errs []error
	for _, name := range names {
		err := membership.Check(fs, fs.PathJoin(dir, name), ownerOf(host, l))
		if err == nil {
			err = fs.RemoveAll(fs.PathJoin(dir, name))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func fileSystem(o state.Options) vfs.FS {
	if o.FS == nil {
		return vfs.Default
	}
	return o.FS
}

// base has the chunks of before the clone. It implements extent.Base.
type base struct {
	host *extent.Store
	live *stamp.Stamp
}

// Durable implements extent.Base.
func (b base) Durable(id extent.ChunkID) bool { return b.host.Durable(id) }

// Read implements extent.Base. A copy that is damaged on the host is read from another node.
func (b base) Read(ref extent.Ref, off int64, p []byte) (int, error) {
	if n, err := b.host.Read(ref, off, p); err == nil {
		return n, nil
	}
	return b.live.ReadChunk(ref, off, p)
}
