package devproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// ErrExited means that a process ended by itself.
var ErrExited = errors.New("the process exited")

// outputTail bounds how much of a process's output an error quotes, in bytes.
const outputTail = 8 << 10

// Child is a process that was started. Kill9 and Stop end it; one of them must be called.
// Methods may be called concurrently.
type Child struct {
	name, log string
	cmd       *exec.Cmd
	// exited is closed when the process has ended and exit holds how.
	exited chan struct{}
	exit   error
}

// Run starts a process that is called name in errors and appends what it prints to the
// file log.
func Run(name, log, binary string, args ...string) (*Child, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("devproc: output: %w", err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	// A test that is itself killed must not leave a server behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Start()
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("devproc: start %s: %w", binary, err)
	}
	c := &Child{name: name, log: log, cmd: cmd, exited: make(chan struct{})}
	go func() {
		c.exit = cmd.Wait()
		close(c.exited)
	}()
	return c, nil
}

// PID is the process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Resident is the memory that the process has in use, in bytes: its resident set without pages of
// files, which the system takes back when it needs them.
func (c *Child) Resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.PID()))
	if err != nil {
		return 0, fmt.Errorf("devproc: memory of %s: %w", c.name, err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("devproc: memory of %s: no RssAnon", c.name)
}

// Kill9 ends the process as a power cut would, its page cache apart, and waits
// until it is gone.
func (c *Child) Kill9() error {
	if err := c.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.exited
	return nil
}

// Pause stops the process where it stands; its connections stay. Resume lets it go on.
func (c *Child) Pause() error { return c.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (c *Child) Resume() error { return c.signal(syscall.SIGCONT) }

// Stop asks the process to end and waits; after the deadline of ctx it kills it
// and says so.
func (c *Child) Stop(ctx context.Context) error {
	if err := c.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.exited:
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%s did not stop on SIGTERM: %w\n%s", c.name, ctx.Err(), c.Output()), c.Kill9())
	}
	if c.exit != nil {
		return fmt.Errorf("%s stopped badly: %w\n%s", c.name, c.exit, c.Output())
	}
	return nil
}

func (c *Child) signal(sig syscall.Signal) error {
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("devproc: signal %v to %s: %w", sig, c.name, err)
	}
	return nil
}

// Exited is closed when the process has ended, by whatever cause.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Output returns the end of what every process with this log has printed.
func (c *Child) Output() string {
	b, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	if n := len(b) - outputTail; n > 0 {
		b = b[n:]
	}
	return string(b)
}
