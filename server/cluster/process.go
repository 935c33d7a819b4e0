package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopWait is how long a process may take to drain and stop before it is killed.
const stopWait = 30 * time.Second

// process identifies a started process: its number and its start time as the kernel counts it.
// The number alone may belong to another process by now.
type process struct {
	pid     int
	started string
	// elsewhere: the file that names it is a copy, so that it was started in another folder.
	elsewhere bool
}

// record writes which process runs in a folder. The file names its own inode, which a copy of the folder does not keep.
func record(dir string, pid int, started string) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, pidFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	inode, err := inodeOf(f)
	if err == nil {
		_, err = fmt.Fprintln(f, pid, started, inode)
	}
	return err
}

func inodeOf(f *os.File) (uint64, error) {
	is, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return is.Sys().(*syscall.Stat_t).Ino, nil
}

// launch starts a process that does not run, and records which process it is.
func (o Options) launch(m member) error {
	dir := o.folder(m.name)
	out, err := os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command(o.Binary, o.args(m)...)
	cmd.Stdout, cmd.Stderr = out, out
	// Ctrl-C in the terminal must not reach it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = errors.Join(cmd.Start(), out.Close())
	if err != nil {
		return fmt.Errorf("start %s: %w", m.name, err)
	}
	started, err := startOf(cmd.Process.Pid)
	if err == nil {
		err = record(dir, cmd.Process.Pid, started)
	}
	switch {
	case errors.Is(err, os.ErrProcessDone): // It ended before it was looked at.
		_ = cmd.Wait() // How is in its last lines.
		return fmt.Errorf("%s ended: %s", m.name, o.lastLines(m.name))
	case err != nil:
		return errors.Join(fmt.Errorf("start %s: %w", m.name, err), cmd.Process.Kill(), cmd.Wait())
	}
	return cmd.Process.Release()
}

// args is the command line of a process.
func (o Options) args(m member) []string {
	return []string{m.command, "--config", filepath.Join(o.folder(m.name), configFile)}
}

// find returns the process that was started under a name in this folder, and whether it runs.
func (o Options) find(name string) (p process, running bool, err error) {
	f, err := os.Open(filepath.Join(o.folder(name), pidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	defer func() { _ = f.Close() }() // It was only read.
	var written uint64
	n, err := fmt.Fscanln(f, &p.pid, &p.started, &written)
	switch n {
	case 2: // Of an earlier version, which wrote no inode.
	case 3:
		inode, err := inodeOf(f)
		if err != nil {
			return p, false, err
		}
		p.elsewhere = written != inode
	default:
		return p, false, fmt.Errorf("%s does not name a process: %w; remove it when none runs", f.Name(), err)
	}
	return p, p.runs() && !p.elsewhere, nil
}

// runs reports whether the process that was started still runs. A zombie does not.
func (p process) runs() bool {
	started, err := startOf(p.pid)
	return err == nil && started == p.started
}

// startOf returns the start time of a process, in clock ticks since boot.
func startOf(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	_, rest, ok := strings.Cut(string(text), ") ") // The name before it may contain anything.
	fields := strings.Fields(rest)
	const state, start = 0, 19
	if !ok || len(fields) <= start || fields[state] == "Z" {
		return "", fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	return fields[start], nil
}

func (o Options) end(ctx context.Context, name string) error {
	p, running, err := o.find(name)
	if err != nil {
		return err
	}
	if p.elsewhere && p.runs() {
		return fmt.Errorf("%s: process %d was started in another folder, of which %s is a copy: it goes on; stop it by the --dir that it was started with", name, p.pid, o.Dir)
	}
	if !running {
		return nil
	}
	if err := p.end(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.Remove(filepath.Join(o.folder(name), pidFile))
}

// PID returns the number of a process by its name, such as northcentralus-1; 0 if it does not
// run.
func (o Options) PID(name string) (int, error) {
	p, running, err := o.find(name)
	if !running {
		return 0, err
	}
	return p.pid, nil
}

// end stops a process: SIGTERM, and SIGKILL after stopWait.
func (p process) end(ctx context.Context) error {
	if !p.runs() {
		return nil
	}
	if err := syscall.Kill(p.pid, syscall.SIGTERM); err != nil {
		return err
	}
	drain, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	if p.gone(drain) {
		return nil
	}
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	if !p.gone(ctx) {
		return ctx.Err()
	}
	return fmt.Errorf("process %d did not stop within %s and was killed", p.pid, stopWait)
}

// gone waits until the process has exited; false if ctx ended first.
func (p process) gone(ctx context.Context) bool {
	for p.runs() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}
