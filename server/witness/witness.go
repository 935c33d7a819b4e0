// Package witness runs the witness (package failover/witness) as a process: its listener, certificates and folder.
//
// Invariant: only nodes of the two locations are answered, each for its own location.
package witness

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/api/admin"
	"antipode/failover/witness"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/metrics"
	"antipode/server/config"
	"antipode/server/listen"
	"antipode/stamp/membership"
)

// Options configures a Process. All fields are required.
type Options struct {
	Config config.Witness
	Clock  clock.Clock
	Logger *slog.Logger
}

// Process is a witness that answers.
type Process struct{ server *listen.Server }

// portsOf is where an operator chooses the port.
const portsOf = "listen and metrics of its configuration"

// callMax bounds a call, all of it.
const callMax = 10 * time.Second

// node is the number of the witness in its certificate: there is one.
const node = 1

// Open reads the claims, listens and answers, and shows its metrics. Close must follow.
func Open(o Options) (*Process, error) {
	c := o.Config
	if err := membership.Claim(vfs.Default, c.Data, membership.Owner{Kind: membership.Witness, Location: c.Location}); err != nil {
		return nil, err
	}
	self := identity.Identity{Stamp: c.Stamp, Location: c.Location, Node: node}
	keyring, err := identity.OpenKeyring(self, identity.Files{CA: c.TLS.CA, Cert: c.TLS.Cert, Key: c.TLS.Key}, o.Clock, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("certificates of the section tls: %w", err)
	}
	registry := metrics.NewRegistry()
	counts, err := metrics.NewWitness(registry, c.Locations, witness.Kinds(), witness.Outcomes())
	if err != nil {
		return nil, err
	}
	w, err := witness.Open(witness.Options{
		Dir: filepath.Join(c.Data, "witness"), Locations: c.Locations, Life: c.Lease.Duration(), Clock: o.Clock, Name: rand.Text(), Observer: counts,
	})
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		metrics.RegisterWitness(registry, func() metrics.WitnessSample {
			s := w.State()
			return metrics.WitnessSample{Lease: s.Life, Claims: s.Claims, SinceRenewal: s.SinceRenewal}
		}),
		metrics.RegisterCertificate(registry, keyring.NotAfter),
	)
	if err != nil {
		return nil, err
	}
	server, err := listen.Open([]listen.Listener{{
		Addr: c.Listen, What: "witness", Handler: witness.Handler(w), TLS: keyring.LocationsServerConfig(c.Locations...),
		Limit: func(s *http.Server) {
			s.ReadTimeout, s.WriteTimeout = callMax, callMax
			s.MaxHeaderBytes = 8 << 10
		},
	}, {
		Addr: c.Metrics, What: "metrics", Limit: admin.Limit, Handler: admin.Metrics(registry),
	}}, portsOf, o.Logger)
	if err != nil {
		return nil, err
	}
	return &Process{server}, nil
}

// Close drains the calls and closes the port.
func (p *Process) Close() error { return p.server.Close() }
