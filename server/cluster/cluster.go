package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	wire "antipode/client/admin"
	"antipode/internal/clock"
)

// Start starts the processes that do not run and returns when all answer. It fails if another process has one of their
// ports, before anything is started, if ctx ends, and with Ended if processes exit: the others go on.
// Existing data is served again. A cluster of an earlier version that
// still runs is refused: its nodes would not accept this version's gateway.
func Start(ctx context.Context, o Options) error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	o.Dir = dir
	if err := o.launchMissing(ctx); err != nil {
		return err
	}
	return o.awaitAll(ctx)
}

// launchMissing starts the processes that do not run. A start that is refused has written nothing: the next one is as before.
func (o Options) launchMissing(ctx context.Context) error {
	unlock, err := o.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	members := o.plan()
	if err := o.samePorts(members); err != nil {
		return err
	}
	retired, err := o.retired(members)
	if err != nil {
		return err
	}
	for _, name := range retired {
		if _, running, err := o.find(name); err != nil || running {
			return errors.Join(fmt.Errorf(
				"%s runs in %s and is no part of what is to start: stop the cluster first with antipode cluster stop --dir %[2]s", name, o.Dir), err)
		}
	}
	if err := o.portsFree(ctx); err != nil {
		return err
	}
	if o.isNew() {
		if err := o.justMade().Set(); err != nil {
			return err
		}
	}
	if err := o.prepare(members); err != nil {
		return err
	}
	return o.launchAll(members)
}

// launchAll starts the processes that do not run.
func (o Options) launchAll(members []member) error {
	for _, m := range members {
		if _, running, err := o.find(m.name); err != nil {
			return err
		} else if running {
			continue
		}
		if err := o.launch(m); err != nil {
			return err
		}
	}
	return nil
}

// awaitAll waits until all processes with an admin port answer there, and the witness and the name server at their metrics.
func (o Options) awaitAll(ctx context.Context) error {
	for _, a := range o.answering() {
		if err := o.await(ctx, a.name, a.address); err != nil {
			return err
		}
	}
	return nil
}

// samePorts returns an error if a process of the cluster runs with other ports than Start would give it, or another witness:
// nothing is written, since the others would look for it there without end.
func (o Options) samePorts(members []member) error {
	listen := func(text []byte) (any, error) {
		var c struct {
			Listen  any `yaml:"listen"`
			Witness any `yaml:"witness"`
		}
		err := yaml.Unmarshal(text, &c)
		return c, err
	}
	for _, m := range members {
		switch _, running, err := o.find(m.name); {
		case err != nil:
			return err
		case !running:
			continue
		}
		text, err := os.ReadFile(filepath.Join(o.folder(m.name), configFile))
		if err != nil {
			return err
		}
		planned, err := yaml.Marshal(m.config)
		if err != nil {
			return err
		}
		has, hasErr := listen(text)
		want, wantErr := listen(planned)
		if err := errors.Join(hasErr, wantErr); err != nil {
			return err
		}
		if !reflect.DeepEqual(has, want) {
			return fmt.Errorf("%s runs in %s with other ports, or another witness: leave out --port-base and --witness, or stop it first with antipode cluster stop --dir %[2]s", m.name, o.Dir)
		}
	}
	return nil
}

// portsFree returns an error if another process listens where one that Start would start is to listen. It could not, and the
// answers of another one's admin port would pass for its own.
func (o Options) portsFree(ctx context.Context) error {
	dialer := net.Dialer{Timeout: askTimeout}
	for _, p := range o.listeners() {
		_, running, err := o.find(p.process)
		if err != nil {
			return err
		}
		if running {
			continue
		}
		taken := fmt.Errorf("cannot listen on %s (%s): another process does; stop what uses the port, or choose others with --port-base", p.address, p.what)
		if conn, err := dialer.DialContext(ctx, "tcp", p.address); err == nil {
			return errors.Join(taken, conn.Close())
		}
		if !p.udp {
			continue
		}
		conn, err := net.ListenPacket("udp", p.address)
		if err != nil {
			return taken
		}
		if err := conn.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) nodeNames() []node {
	var out []node
	for l := range locations() {
		for i := range nodes {
			out = append(out, node{l, i})
		}
	}
	return out
}

// Admin is a client of the gateway's admin port.
func (o Options) Admin() *wire.Client {
	c, err := wire.New("http://"+o.Gateway().Admin(), nil)
	if err != nil {
		panic("cluster: " + err.Error()) // The address is made by this package.
	}
	return c
}

// EnsureAccount makes an account, unless it exists with the same keys, and returns it with its
// endpoints. A new stamp can make accounts once all its nodes have been up together.
// EnsureAccount tries again until the account is made, ctx ends, a process exits, or a node
// refuses the account.
func EnsureAccount(ctx context.Context, o Options, a wire.NewAccount) (made wire.AccountInfo, err error) {
	a.Ensure = true
	waiting := func(err error) string { return o.waitsFor(ctx, fmt.Sprintf("account %s: %v", a.Name, err)) }
	err = o.until(ctx, waiting, func() (err error) {
		made, err = o.Admin().CreateAccount(ctx, a)
		var said *wire.Error
		if errors.As(err, &said) && said.Status < http.StatusInternalServerError {
			return refusal{err}
		}
		return err
	})
	return made, err
}

// refusal is an error that waiting does not help.
type refusal struct{ error }

// Unwrap returns the refusal's cause.
func (r refusal) Unwrap() error { return r.error }

// AwaitReady waits until both locations are ready: they serve, and the statistics of all accounts
// are live.
func AwaitReady(ctx context.Context, o Options) error {
	return o.until(ctx, error.Error, func() error {
		r, err := o.Admin().Readiness(ctx)
		if err != nil {
			return err
		}
		for _, l := range r.Locations {
			if !l.Ready {
				return fmt.Errorf("%s: %s", l.Name, l.Reason)
			}
		}
		if !r.Ready {
			return errors.New("the gateway knows no location")
		}
		return nil
	})
}

// until calls f until it succeeds or returns a refusal, a process exits, or ctx ends. After each
// failed attempt it calls OnWait with what waiting returns for the error.
func (o Options) until(ctx context.Context, waiting func(error) string, f func() error) error {
	for {
		err := f()
		var refused refusal
		if err == nil || errors.As(err, &refused) {
			return err
		}
		if ended := o.ended(); ended != nil {
			return ended
		}
		if o.OnWait != nil {
			o.OnWait(waiting(err))
		}
		if ctxErr := clock.Wait(ctx, untilPause); ctxErr != nil {
			return fmt.Errorf("%w: %w", ctxErr, err)
		}
	}
}

// waitsFor returns which location does not serve and why, or other if all serve or none answers.
func (o Options) waitsFor(ctx context.Context, other string) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, _ := o.Admin().Readiness(ctx) // Without an answer no location is listed.
	for _, l := range r.Locations {
		if !l.Serving {
			return fmt.Sprintf("%s: %s", l.Name, l.Reason)
		}
	}
	return other
}

// Pauses between two attempts of until, and between two checks whether a process listens.
const (
	untilPause  = 200 * time.Millisecond
	listenPause = 50 * time.Millisecond
)

// askTimeout bounds one check whether a process listens: a paused process never answers.
const askTimeout = 5 * time.Second

// await waits until a process answers at its admin port, or that of its metrics.
func (o Options) await(ctx context.Context, name, addr string) error {
	for {
		err := ask(ctx, addr, "/healthz")
		if err == nil {
			return nil
		}
		if _, running, err := o.find(name); err != nil || !running {
			if err = errors.Join(err, o.someEnded(ctx)); err != nil {
				return err
			}
			continue // Another start has started it again.
		}
		if o.OnWait != nil {
			o.OnWait(name + " does not listen yet")
		}
		if ctxErr := clock.Wait(ctx, listenPause); ctxErr != nil {
			return fmt.Errorf("%s: %w; see %s", name, err, o.log(name))
		}
	}
}

func ask(ctx context.Context, addr, page string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+page, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s answers %s", addr, page, resp.Status)
	}
	return nil
}

// Stop ends all processes of the cluster in a folder, the gateway first, and returns when they have exited; it waits
// for the launches of a start that is under way. Processes that an earlier version started are stopped too.
// Acknowledged writes are kept. If this folder is a copy of another, the processes of the other go on, which is an
// error.
func Stop(ctx context.Context, o Options) error {
	if _, err := os.Stat(o.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := o.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	members := o.plan()
	gateway := members[len(members)-1]
	retired, err := o.retired(members)
	names := slices.Clone(retired)
	for _, m := range members {
		names = append(names, m.name)
	}
	errs := []error{err, o.copied(names), o.end(ctx, gateway.name)}
	for _, name := range retired {
		errs = append(errs, o.end(ctx, name))
	}
	results := make([]error, len(members)-1)
	var ended sync.WaitGroup
	for i, m := range members[:len(members)-1] {
		ended.Go(func() { results[i] = o.end(ctx, m.name) })
	}
	ended.Wait()
	return errors.Join(append(errs, results...)...)
}

// retired lists the folders with a process that an earlier version started under a name that no
// member has now.
func (o Options) retired(members []member) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(o.Dir, "*", pidFile))
	for _, f := range files {
		name := filepath.Base(filepath.Dir(f))
		if !slices.ContainsFunc(members, func(m member) bool { return m.name == name }) {
			names = append(names, name)
		}
	}
	return names, err
}
