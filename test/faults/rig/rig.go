package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/cluster"
	"antipode/server/config"
	"antipode/server/dev"
	"antipode/test/devproc"
	"antipode/test/faults/proxy"
	"antipode/test/rest"
)

// Gateway is the name of the gateway, Witness that of the witness; a node's is location-number.
const (
	Gateway = cluster.GatewayName
	Witness = cluster.WitnessName
)

// The locations; the dev account has its primary in the first.
const (
	North = dev.North
	South = dev.South
)

// Nodes is how many a location has.
const Nodes = 3

// The time between two looks at what is waited for, and whether a process listens.
const (
	poll       = 50 * time.Millisecond
	listenPoll = 10 * time.Millisecond
)

// ErrDied means that a process ended though nobody ended it.
var ErrDied = errors.New("a process ended by itself")

// Rig is a running deployment. Methods may be called concurrently; those that start and end
// one process come from one caller at a time.
type Rig struct {
	opts cluster.Options
	http *http.Client
	// commands are the processes by name.
	commands map[string]cluster.Command
	// links are the proxies by who connects and to whom.
	links map[[2]string][]usedLink
	// rates are of what goes between the locations, by where it comes from.
	rates map[geo.Location]*proxy.Rate
	// second are the ports of the second gateway, if there is one.
	second dev.Ports
	held   *devproc.Held

	mu sync.Mutex
	// running are the processes that the rig has started and not ended.
	running map[string]*devproc.Child
	// broken is what the rig itself failed in.
	broken error
	// watching waits for processes that do not listen yet.
	watching sync.WaitGroup
}

// Options configures a Rig.
type Options struct {
	// Binary is the server, and Dir a new folder for all that is kept.
	Binary, Dir string
	// Configure may change the options of a node; nil changes nothing.
	Configure func(c *config.Node)
	// Lease is how long a lease of the witness lives; empty means that there is none.
	Lease config.Duration
}

// Start runs all processes and returns when both locations serve the dev account and its
// statistics are live. Close ends it.
func Start(ctx context.Context, o Options) (_ *Rig, err error) {
	ports := &devproc.Held{}
	base, err := devproc.FindPortBase(ports, func(base int) []string { return cluster.Options{PortBase: base}.Ports() })
	if err != nil {
		return nil, err
	}
	r := &Rig{
		held: ports,
		opts: cluster.Options{
			Dir: o.Dir, PortBase: base, Binary: o.Binary, Configure: o.Configure, Witness: o.Lease != "", Lease: o.Lease,
		}, http: devproc.NewHTTPClient(),
		commands: map[string]cluster.Command{}, links: map[[2]string][]usedLink{}, rates: newRates(), running: map[string]*devproc.Child{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	var openErr error
	commands, err := r.opts.Prepare(func(from, to string, u cluster.Use, address string) string {
		l, err := proxy.Open(address, r.ratesBetween(from, to))
		if err != nil {
			openErr = errors.Join(openErr, err)
			return address
		}
		r.links[[2]string{from, to}] = append(r.links[[2]string{from, to}], usedLink{l, u})
		return l.Addr()
	})
	if err := errors.Join(err, openErr); err != nil {
		return nil, err
	}
	for _, c := range commands {
		r.commands[c.Name] = c
		if err := r.Launch(c.Name); err != nil {
			return nil, err
		}
	}
	account := wire.NewAccount{Name: rest.DevAccount, Location: North, Key1: rest.DevKey, Key2: rest.DevKey}
	if _, err := cluster.EnsureAccount(ctx, r.opts, account); err != nil {
		return nil, errors.Join(err, r.Check())
	}
	return r, r.Ready(ctx)
}

// Ready waits until both locations serve with all their replicas in sync, and the
// statistics of every account are live.
func (r *Rig) Ready(ctx context.Context) error {
	for {
		err := r.ready(ctx)
		if err == nil {
			return nil
		}
		if err := r.Check(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(poll):
		}
	}
}

func (r *Rig) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.opts.Gateway().Admin()+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the gateway's readyz answers %s", resp.Status)
	}
	for _, l := range []geo.Location{North, South} {
		views, err := r.Views(ctx, l)
		if err != nil {
			return err
		}
		for _, v := range views {
			if v.LeaderView == nil || v.InSyncReplicas < Nodes {
				return fmt.Errorf("range %d of %s has not all replicas in sync", v.Range, l)
			}
		}
	}
	return nil
}

// Dir is the folder of everything; each process has one of its name in it.
func (r *Rig) Dir() string { return r.opts.Dir }

// NodesOf lists the nodes of a location.
func NodesOf(l geo.Location) []string {
	var out []string
	for i := range Nodes {
		out = append(out, wire.NodeName(l, geo.NodeID(i+1)))
	}
	return out
}

// All lists all processes.
func All() []string { return append(append(NodesOf(North), NodesOf(South)...), Gateway) }

// Launch starts a process on what its data folder holds. Who connects to it is refused
// until it listens.
func (r *Rig) Launch(name string) error {
	if err := r.setAbsent(name, true); err != nil {
		return err
	}
	child, err := devproc.Run(name, r.log(name), r.opts.Binary, r.commands[name].Args...)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[name] = child
	if name == Witness { // Nodes ask it again until it listens.
		return r.setAbsent(name, false)
	}
	r.watching.Go(func() { r.whenListens(name, child) })
	return nil
}

// whenListens lets connections to a process through when it listens.
func (r *Rig) whenListens(name string, child *devproc.Child) {
	for {
		if resp, err := r.http.Get("http://" + r.ports(name).Admin() + "/healthz"); err == nil {
			_ = resp.Body.Close()
			break
		}
		select {
		case <-child.Exited():
			return
		case <-time.After(listenPoll):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[name] != child {
		return // It was killed meanwhile.
	}
	if err := r.setAbsent(name, false); err != nil {
		r.broken = errors.Join(r.broken, err)
	}
}

func (r *Rig) log(name string) string { return filepath.Join(r.opts.Dir, name, "output.log") }

// Kill ends a process as kill -9 does, and returns when it is gone.
func (r *Rig) Kill(name string) error {
	c, err := r.child(name)
	if err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.running, name)
	r.mu.Unlock()
	return errors.Join(c.Kill9(), r.setAbsent(name, true))
}

// Stop has a process end in order, as SIGTERM does, and returns when it is gone.
func (r *Rig) Stop(ctx context.Context, name string) error {
	c, err := r.child(name)
	if err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.running, name)
	r.mu.Unlock()
	return errors.Join(c.Stop(ctx), r.setAbsent(name, true))
}

// Pause stops a process where it stands, as SIGSTOP does; Resume lets it go on.
func (r *Rig) Pause(name string) error {
	c, err := r.child(name)
	if err != nil {
		return err
	}
	return c.Pause()
}

// Resume lets a paused process go on.
func (r *Rig) Resume(name string) error {
	c, err := r.child(name)
	if err != nil {
		return err
	}
	return c.Resume()
}

// child is a process that runs; one that the rig did not end and that has ended is
// ErrDied.
func (r *Rig) child(name string) (*devproc.Child, error) {
	r.mu.Lock()
	c := r.running[name]
	r.mu.Unlock()
	if c == nil {
		return nil, fmt.Errorf("%s does not run", name)
	}
	select {
	case <-c.Exited():
		return nil, fmt.Errorf("%w: %s\n%s", ErrDied, name, c.Output())
	default:
		return c, nil
	}
}

// Check returns ErrDied if a process that the rig started and did not end has ended, and
// what the rig itself failed in.
func (r *Rig) Check() error {
	r.mu.Lock()
	broken := r.broken
	names := make([]string, 0, len(r.running))
	for name := range r.running {
		names = append(names, name)
	}
	r.mu.Unlock()
	errs := []error{broken}
	for _, name := range names {
		_, err := r.child(name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Output is the end of what a process that runs has printed; empty for one that does not.
func (r *Rig) Output(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.running[name]; c != nil {
		return c.Output()
	}
	return ""
}

// Resident is the memory that a process that runs has in use, in bytes.
func (r *Rig) Resident(name string) (int64, error) {
	c, err := r.child(name)
	if err != nil {
		return 0, err
	}
	return c.Resident()
}

// Views asks the nodes of a location for its ranges, the first that answers.
func (r *Rig) Views(ctx context.Context, l geo.Location) ([]wire.Range, error) {
	var errs []error
	for _, name := range NodesOf(l) {
		ask, cancel := context.WithTimeout(ctx, 5*time.Second)
		status, err := r.Admin(name).Status(ask)
		cancel()
		if err == nil && len(status.Locations) == 1 {
			return status.Locations[0].Ranges, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Leader returns the node that leads a range once there is one, and is one of those that
// are asked for; none are all.
func (r *Rig) Leader(ctx context.Context, l geo.Location, s geo.Service, among ...string) (string, error) {
	for {
		views, err := r.Views(ctx, l)
		for _, v := range views {
			if v.Range == geo.FirstRange(s) && v.LeaderView != nil && (len(among) == 0 || slices.Contains(among, v.Leader)) {
				return v.Leader, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no leader of %v in %s among %v: %w", s, l, among, errors.Join(err, ctx.Err()))
		case <-time.After(poll):
		}
	}
}

// Close ends everything. What a process printed is in its folder.
func (r *Rig) Close() error {
	var errs []error
	for _, name := range append(All(), Witness, SecondGateway) {
		if _, err := r.child(name); err == nil {
			errs = append(errs, r.Kill(name))
		}
	}
	r.watching.Wait()
	r.http.CloseIdleConnections()
	for _, links := range r.links {
		for _, l := range links {
			errs = append(errs, l.Close())
		}
	}
	r.held.Release()
	return errors.Join(errs...)
}
