package devproc

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"antipode/client/admin"
	"antipode/test/rest"
)

// readyPoll is the time between two questions whether a server is ready.
const readyPoll = 50 * time.Millisecond

// Config says which server to run. All fields but Args are needed.
type Config struct {
	// Binary is what Build returned.
	Binary string
	// Dir holds the data folder and the captured output.
	Dir string
	// PortBase is what FreePortBase returned.
	PortBase int
	// Args follow the flags that this package sets itself.
	Args []string
	// Files is how many files the process may have open; 0 means as many as this one.
	Files int
	// HTTP asks for readiness and serves the clients of this process.
	HTTP *http.Client
}

// DataDir is the server's --data.
func (c Config) DataDir() string { return filepath.Join(c.Dir, "data") }

// logPath is where the output of every process of this config is appended.
func (c Config) logPath() string { return filepath.Join(c.Dir, "output.log") }

// Process is one running server. Kill9 and Stop end it; one of them must be
// called.
type Process struct {
	Config
	*Child
}

// Start runs the server and returns at once; see Ready.
func Start(cfg Config) (*Process, error) {
	args := append([]string{
		"dev", "--data", cfg.DataDir(), "--port-base", strconv.Itoa(cfg.PortBase), "--quiet",
	}, cfg.Args...)
	binary := cfg.Binary
	if cfg.Files > 0 {
		args = append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, cfg.Files), binary}, args...)
		binary = "/bin/sh"
	}
	child, err := Run("antipode dev", cfg.logPath(), binary, args...)
	if err != nil {
		return nil, err
	}
	return &Process{Config: cfg, Child: child}, nil
}

// Ready waits until the server says it is ready, or ctx ends, or it exits.
func (p *Process) Ready(ctx context.Context) error {
	url := p.AdminURL(0) + "/readyz"
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("devproc: %w", err)
		}
		resp, err := p.HTTP.Do(r)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("%s answers %s", url, resp.Status)
		}
		select {
		case <-p.Exited():
			return fmt.Errorf("%w before it was ready: %w\n%s", ErrExited, p.exit, p.Output())
		case <-ctx.Done():
			return fmt.Errorf("antipode dev is not ready: %w\n%s", err, p.Output())
		case <-time.After(readyPoll):
		}
	}
}

// AdminURL is the admin port of the process (0), or of a location (NorthPorts,
// SouthPorts).
func (p *Process) AdminURL(ports int) string {
	return fmt.Sprintf("http://127.0.0.1:%d", p.PortBase+ports+AdminOffset)
}

// Admin returns a client of the process's admin port.
func (p *Process) Admin() *admin.Client {
	c, err := admin.New(p.AdminURL(0), p.HTTP)
	if err != nil {
		panic("devproc: " + err.Error())
	}
	return c
}

// Client returns a path-style client of the dev account at the gateway (0) or
// at a location's own front end (NorthPorts, SouthPorts).
func (p *Process) Client(ports int, secondary bool) *rest.Client {
	return rest.NewPathStyle(p.HTTP, p.PortBase+ports, secondary)
}
