package devproc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"antipode/client/admin"
	"antipode/test/rest"
)

// ErrExited means that the server ended by itself.
var ErrExited = errors.New("antipode dev exited")

const (
	readyPoll = 50 * time.Millisecond
	// outputTail bounds how much of the server's output an error quotes, in bytes.
	outputTail = 8 << 10
)

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
	cmd *exec.Cmd
	// exited is closed when the process has ended and exit holds how.
	exited chan struct{}
	exit   error
}

// Start runs the server and returns at once; see Ready.
func Start(cfg Config) (*Process, error) {
	out, err := os.OpenFile(cfg.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("devproc: output: %w", err)
	}
	args := append([]string{
		"dev", "--data", cfg.DataDir(), "--port-base", strconv.Itoa(cfg.PortBase), "--quiet",
	}, cfg.Args...)
	cmd := exec.Command(cfg.Binary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	// A test that is itself killed must not leave a server behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Start()
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("devproc: start %s: %w", cfg.Binary, err)
	}
	p := &Process{Config: cfg, cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.exit = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

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
		case <-p.exited:
			return fmt.Errorf("%w before it was ready: %w\n%s", ErrExited, p.exit, p.Output())
		case <-ctx.Done():
			return fmt.Errorf("antipode dev is not ready: %w\n%s", err, p.Output())
		case <-time.After(readyPoll):
		}
	}
}

// Kill9 ends the process as a power cut would, its page cache apart, and waits
// until it is gone.
func (p *Process) Kill9() error { return p.end(syscall.SIGKILL) }

// Stop asks the process to end and waits; after the deadline of ctx it kills it
// and says so.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("antipode dev did not stop on SIGTERM: %w\n%s", ctx.Err(), p.Output()), p.Kill9())
	}
	if p.exit != nil {
		return fmt.Errorf("antipode dev stopped badly: %w\n%s", p.exit, p.Output())
	}
	return nil
}

func (p *Process) end(sig syscall.Signal) error {
	if err := p.signal(sig); err != nil {
		return err
	}
	<-p.exited
	return nil
}

func (p *Process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("devproc: signal %v: %w", sig, err)
	}
	return nil
}

// Exited is closed when the process has ended, by whatever cause.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Output returns the end of what every process of this config has printed.
func (p *Process) Output() string {
	b, err := os.ReadFile(p.logPath())
	if err != nil {
		return err.Error()
	}
	if n := len(b) - outputTail; n > 0 {
		b = b[n:]
	}
	return string(b)
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

// Client returns a path-style client of the dev account at the front door (0) or
// at a location's own front end (NorthPorts, SouthPorts).
func (p *Process) Client(ports int, secondary bool) *rest.Client {
	return rest.NewPathStyle(p.HTTP, p.PortBase+ports, secondary)
}
