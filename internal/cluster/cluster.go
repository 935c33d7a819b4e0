package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	wire "antipode/client/admin"
)

// Start starts the processes that do not run and returns when all of them answer. Data
// that is there is served again.
func Start(ctx context.Context, o Options) error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	o.Dir = dir
	members := o.plan()
	if err := o.prepare(members); err != nil {
		return err
	}
	for _, m := range members {
		if err := o.launch(m); err != nil {
			return err
		}
	}
	for _, n := range o.nodeNames() {
		if err := o.await(ctx, n.name(), o.ports(n).Admin(), "/healthz"); err != nil {
			return err
		}
	}
	return o.await(ctx, "frontdoor", o.Door().Admin(), "/healthz")
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

// Admin is a client of the front door's admin port.
func (o Options) Admin() *wire.Client {
	c, err := wire.New("http://"+o.Door().Admin(), nil)
	if err != nil {
		panic("cluster: " + err.Error()) // An address of our own making.
	}
	return c
}

// EnsureAccount makes an account unless it is there: a new stamp can when all its nodes
// have met.
func EnsureAccount(ctx context.Context, o Options, a wire.NewAccount) error {
	for {
		_, err := o.Admin().CreateAccount(ctx, a)
		var said *wire.Error
		if err == nil || errors.As(err, &said) && said.Status == http.StatusConflict {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("make account %s: %w", a.Name, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// AwaitReady returns when both locations serve and the statistics of every account are
// live.
func AwaitReady(ctx context.Context, o Options) error {
	return o.await(ctx, "frontdoor", o.Door().Admin(), "/readyz")
}

// await waits until a page of a member's admin port answers 200.
func (o Options) await(ctx context.Context, name, addr, page string) error {
	for {
		last := ask(ctx, addr, page)
		if last == nil {
			return nil
		}
		if _, running, err := o.find(name); err != nil || !running {
			return errors.Join(fmt.Errorf("%s ended: %s", name, o.lastWords(name)), err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; see %s", name, last, filepath.Join(o.folder(name), logFile))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func ask(ctx context.Context, addr, page string) error {
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

// lastWords is the end of a member's log.
func (o Options) lastWords(name string) string {
	const tail = 2 << 10
	text, err := os.ReadFile(filepath.Join(o.folder(name), logFile))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-tail):]))
}

// Stop ends all processes of the cluster in a folder, the door first, and returns when they
// are gone. What was acknowledged is kept.
func Stop(ctx context.Context, o Options) error {
	members := o.plan()
	door := members[len(members)-1]
	errs := []error{o.end(ctx, door.name)}
	results := make([]error, len(members)-1)
	var ended sync.WaitGroup
	for i, m := range members[:len(members)-1] {
		ended.Go(func() { results[i] = o.end(ctx, m.name) })
	}
	ended.Wait()
	return errors.Join(append(errs, results...)...)
}

func (o Options) end(ctx context.Context, name string) error {
	p, running, err := o.find(name)
	if err != nil || !running {
		return err
	}
	if err := p.end(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.Remove(filepath.Join(o.folder(name), pidFile))
}

// PID is the process of a member, such as northcentralus-1; 0 where it does not run.
func (o Options) PID(name string) (int, error) {
	p, running, err := o.find(name)
	if !running {
		return 0, err
	}
	return p.pid, nil
}
