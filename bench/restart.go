package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"antipode/internal/clock"
)

// workloadRestart writes to three nodes in a child process, kills that with SIGKILL
// while its log is long, starts it again, and measures how long that takes to serve. Under
// default options the tail of the log is bounded by the flushes of the state: it kills when
// the tail is as long as it gets. With --bytes it turns the flushes off, by a memtable that
// is large enough, and kills when the tail has that length.
const workloadRestart = "restart"

// restartWait bounds the time from the second start until all is whole, and loadWait the
// time until the tail has a length that --bytes asks for.
const (
	restartWait = 10 * time.Minute
	loadWait    = 10 * time.Minute
)

// nearlyMost is which share of the longest tail seen so far is long enough to be killed at.
const nearlyMost = 0.95

// restarted is what a restart came to. Bytes are of one node, the one with the most.
type restarted struct {
	Workload string `json:"workload"`
	// DefaultOptions: flushes bound the tail.
	DefaultOptions bool `json:"default_options"`
	// TailBytes were in the log when the process was killed, TailMaxBytes at most before.
	TailBytes    int64 `json:"tail_bytes"`
	TailMaxBytes int64 `json:"tail_max_bytes"`
	// Replayed of the Logged entries were applied again; ReplayedBytes are those of all
	// three nodes.
	Replayed      uint64 `json:"replayed_entries"`
	Logged        uint64 `json:"logged_entries"`
	ReplayedBytes int64  `json:"replayed_bytes_three_nodes"`
	// Seconds from the start of the process until all stores are open, until a write was
	// committed in each service's range, and until every replica is in sync and has applied
	// everything.
	OpenSeconds  float64 `json:"open_seconds"`
	ServeSeconds float64 `json:"serve_seconds"`
	WholeSeconds float64 `json:"whole_seconds"`
}

func measureRestart(ctx context.Context, o Options, clk clock.Clock, out io.Writer) error {
	return inFolder(o, func(dir string) error {
		res := restarted{Workload: o.Workload, DefaultOptions: o.Bytes == 0}
		if err := res.load(ctx, o, dir, clk); err != nil {
			return fmt.Errorf("loading: %w", err)
		}
		if err := res.restart(ctx, o, dir, clk); err != nil {
			return fmt.Errorf("after the restart: %w", err)
		}
		return res.print(out, o.JSON)
	})
}

// load lets a child write, and kills it when its log is long enough.
func (res *restarted) load(ctx context.Context, o Options, dir string, clk clock.Clock) error {
	c, err := startChild(childLoad, o, dir)
	if err != nil {
		return err
	}
	began := clk.Now()
	for {
		line, err := c.next(ctx)
		if err != nil {
			return errors.Join(err, c.kill())
		}
		res.TailBytes = line.TailBytes
		res.TailMaxBytes = max(res.TailMaxBytes, line.TailBytes)
		took := clk.Now().Sub(began)
		if o.Bytes > 0 {
			if res.TailBytes >= int64(o.Bytes) {
				return c.kill()
			}
			if took > loadWait {
				return errors.Join(fmt.Errorf("the tail grew to %v, not to %v, in %v", byteSize(res.TailMaxBytes), o.Bytes, loadWait), c.kill())
			}
			continue
		}
		if took > o.Duration/2 && float64(res.TailBytes) >= nearlyMost*float64(res.TailMaxBytes) || took > o.Duration {
			return c.kill()
		}
	}
}

// restart starts a child on what the first one left and waits until it is whole.
func (res *restarted) restart(ctx context.Context, o Options, dir string, clk clock.Clock) error {
	ctx, cancel := context.WithTimeout(ctx, restartWait)
	defer cancel()
	began := clk.Now()
	c, err := startChild(childServe, o, dir)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		event string
		at    *float64
	}{{childOpen, &res.OpenSeconds}, {childServes, &res.ServeSeconds}, {childWhole, &res.WholeSeconds}} {
		line, err := c.next(ctx)
		if err == nil && line.Event != step.event {
			err = fmt.Errorf("the child said %q, not %q", line.Event, step.event)
		}
		if err != nil {
			return errors.Join(err, c.kill())
		}
		*step.at = clk.Now().Sub(began).Seconds()
		res.Replayed, res.Logged, res.ReplayedBytes = line.Replayed, line.Logged, line.ReplayedBytes
	}
	return c.kill()
}

// print writes the result for people, or as one line of JSON.
func (res *restarted) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(res)
	}
	options := "default options"
	if !res.DefaultOptions {
		options = "no flush of the state"
	}
	_, err := fmt.Fprintf(out, `%s: three nodes in one process, %s, changes of %d rows of 1 KiB, kill -9 under load
  tail      %v of log in a node at the kill, %v at most before
  replayed  %d of %d logged entries in a node; %v in the three together
  open      %.2f s after the start of the process
  serves    %.2f s: a write was committed in each service's range
  whole     %.2f s: all replicas in sync, everything applied
`, res.Workload, options, rowsPerChange, byteSize(res.TailBytes), byteSize(res.TailMaxBytes),
		res.Replayed, res.Logged, byteSize(res.ReplayedBytes), res.OpenSeconds, res.ServeSeconds, res.WholeSeconds)
	return err
}

// child is a process of this binary that runs the nodes.
type child struct {
	cmd   *exec.Cmd
	lines chan childLine
	err   error // Why lines ended; set before lines is closed.
}

// startChild starts a child that does what mode says.
func startChild(mode string, o Options, dir string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, childArgument, mode, dir, strconv.FormatInt(int64(o.Bytes), 10), strconv.Itoa(o.Concurrency))
	var words strings.Builder
	cmd.Stderr = &words
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // It must not outlive this one.
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, lines: make(chan childLine)}
	go func() {
		defer close(c.lines)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			var line childLine
			if c.err = json.Unmarshal(lines.Bytes(), &line); c.err != nil {
				break
			}
			c.lines <- line
		}
		c.err = errors.Join(c.err, lines.Err(), cmd.Wait())
		if c.err != nil && words.Len() > 0 {
			c.err = fmt.Errorf("%w: %s", c.err, strings.TrimSpace(words.String()))
		}
	}()
	return c, nil
}

// next returns what the child says next.
func (c *child) next(ctx context.Context) (childLine, error) {
	select {
	case line, ok := <-c.lines:
		if !ok {
			return line, fmt.Errorf("the child ended by itself: %w", c.err)
		}
		return line, nil
	case <-ctx.Done():
		return childLine{}, ctx.Err()
	}
}

// kill ends the child as kill -9 does and returns when it is gone.
func (c *child) kill() error {
	err := c.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	for range c.lines { // Until its output ends.
	}
	return err
}
