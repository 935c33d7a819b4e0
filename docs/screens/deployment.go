package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"antipode/internal/clock"
	"antipode/server/cluster"
	"antipode/test/devproc"
)

const (
	// showMax bounds how long a screen takes to show what it waits for, endMax how long the processes take to end.
	showMax = time.Minute
	endMax  = time.Minute
	// A screen is taken when it was the same steady times in a row, a pause apart: what follows from a fault takes
	// some seconds.
	pause  = time.Second
	steady = 4
)

// deployment is a cluster of processes with its witness, in a temporary folder.
type deployment struct {
	bin, dir string
	base     int
	ports    devproc.Held
}

// start starts one with the programs in bin.
func start(ctx context.Context, bin string) (d *deployment, err error) {
	d = &deployment{bin: bin}
	addresses := func(base int) []string { return cluster.Options{PortBase: base}.Ports() }
	if d.base, err = devproc.FindPortBase(&d.ports, addresses); err != nil {
		return nil, err
	}
	if d.dir, err = os.MkdirTemp("", "antipode-screens"); err != nil {
		return nil, err
	}
	if err := d.heal(ctx); err != nil {
		return nil, errors.Join(err, d.end())
	}
	return d, nil
}

// end ends all processes, whatever has become of the run.
func (d *deployment) end() error {
	defer d.ports.Release()
	ctx, cancel := context.WithTimeout(context.Background(), endMax)
	defer cancel()
	if err := cluster.Stop(ctx, cluster.Options{Dir: d.dir}); err != nil {
		return err // The folder stays: it names the processes.
	}
	return os.RemoveAll(d.dir)
}

// environment is that of the programs: without accounts, tokens and ports that the user has set for other deployments.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ANTIPODE_") })
}

// heal starts what does not run.
func (d *deployment) heal(ctx context.Context) error {
	c := exec.CommandContext(ctx, filepath.Join(d.bin, "antipode"), "cluster", "start", "--witness",
		"--dir", d.dir, "--port-base", strconv.Itoa(d.base))
	c.Env = environment()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("cluster start: %w: %s", err, out)
	}
	return nil
}

// ctl runs antipodectl and returns all that it prints.
func (d *deployment) ctl(ctx context.Context, command string) (string, error) {
	c := exec.CommandContext(ctx, filepath.Join(d.bin, "antipodectl"), strings.Fields(command)...)
	c.Env = append(environment(), "ANTIPODE_ADMIN=http://"+cluster.Options{PortBase: d.base}.Gateway().Admin())
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("antipodectl %s: %w: %s", command, err, out)
	}
	return string(out), err
}

// play brings about a scene and takes its screens.
func (d *deployment) play(ctx context.Context, s scene, printed map[screen]string) error {
	if !s.keep {
		if err := d.heal(ctx); err != nil {
			return err
		}
		if _, err := d.ctl(ctx, "link heal"); err != nil {
			return err
		}
		if _, err := d.take(ctx, scenes()[0].look[0]); err != nil {
			return err
		}
	}
	for _, name := range s.kill {
		if err := d.kill(name); err != nil {
			return err
		}
	}
	if s.do != "" {
		if _, err := d.ctl(ctx, s.do); err != nil {
			return err
		}
	}
	for _, l := range s.look {
		text, err := d.take(ctx, l)
		if err != nil {
			return err
		}
		printed[screen{s.title, l.command}] = text
	}
	return nil
}

func (d *deployment) kill(name string) error {
	pid, err := cluster.Options{Dir: d.dir}.PID(name)
	if err == nil && pid == 0 {
		err = fmt.Errorf("%s does not run", name)
	}
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// take returns a screen once it shows what it waits for and no longer changes.
func (d *deployment) take(ctx context.Context, l look) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, showMax)
	defer cancel()
	for shown, times := "", 0; ; {
		out, err := d.ctl(ctx, l.command)
		// An exit code is not an error: check has one for what it finds.
		if exit := (*exec.ExitError)(nil); err != nil && (ctx.Err() != nil || !errors.As(err, &exit)) {
			return "", fmt.Errorf("%w: it does not stay at %s: %s", err, l.until, shown)
		}
		out = stable(out)
		if out != shown {
			shown, times = out, 0
		}
		if times++; times >= steady && l.until.MatchString(out) {
			return wrap(out), nil
		}
		if err := clock.Wait(ctx, pause); err != nil {
			return "", fmt.Errorf("%s: %w: it does not stay at %s: %s", l.command, err, l.until, shown)
		}
	}
}
