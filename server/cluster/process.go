package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	// logged is how long its log was before; 0 if an earlier version started it.
	logged int64
	// elsewhere is the folder of the cluster that it is of, if that is another one, of which this one is a copy.
	elsewhere string
}

// launch starts a process that does not run, and records which process it is.
func (o Options) launch(m member) error {
	dir := o.folder(m.name)
	out, err := os.OpenFile(o.log(m.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	before, err := out.Stat()
	if err != nil {
		return errors.Join(err, out.Close())
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
	keep := func(started string) error {
		return write(dir, file{processFile, fmt.Appendf(nil, "%s %d\n", started, before.Size())}, file{pidFile, fmt.Appendf(nil, "%d\n", cmd.Process.Pid)})
	}
	if err == nil {
		err = keep(started)
	}
	switch {
	case errors.Is(err, os.ErrProcessDone): // It ended before it was looked at: see Ended.
		_ = cmd.Wait() // How is in its log.
		return keep("0")
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
	file := filepath.Join(o.folder(name), pidFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	// The number alone: people give the file to kill. Earlier versions had the start there, too.
	if n, _ := fmt.Sscan(string(text), &p.pid, &p.started, &p.logged); n == 1 {
		text, err = os.ReadFile(filepath.Join(o.folder(name), processFile))
		if err == nil {
			_, err = fmt.Sscan(string(text), &p.started, &p.logged)
		}
	} else if n == 0 {
		err = errors.New("it has no number")
	}
	if err != nil {
		return p, false, fmt.Errorf("%s does not name a process: %w; remove it when none runs", file, err)
	}
	if !p.runs() {
		return p, false, nil
	}
	p.elsewhere, err = p.ofAnother(o.folder(name))
	return p, p.elsewhere == "" && err == nil, err
}

// ofAnother returns the folder of the cluster whose configuration the command line of a process names, "" if the process is
// that of dir. The command line of a folder that has moved since names a file that is gone; the folder of that name may be
// there again, since processes make the folders that they write to.
func (p process) ofAnother(dir string) (another string, err error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // It has ended.
	}
	if err != nil {
		return "", err
	}
	args := strings.Split(string(line), "\x00")
	at := slices.Index(args, "--config") + 1
	if at == 0 || at == len(args) || !filepath.IsAbs(args[at]) {
		return "", nil
	}
	of := filepath.Dir(args[at])
	_, err = os.Stat(args[at])
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	named, namedErr := os.Stat(of)
	here, hereErr := os.Stat(dir) // Of the folder: the files of a copy may be the same.
	if err := errors.Join(err, namedErr, hereErr); err != nil {
		return "", err
	}
	if os.SameFile(named, here) {
		return "", nil
	}
	return filepath.Dir(of), nil
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

// copied returns an error if one of the processes runs in another folder, of which this one is a copy.
func (o Options) copied(names []string) error {
	for _, name := range names {
		if p, _, err := o.find(name); err == nil && p.elsewhere != "" { // Other errors are those of end.
			return fmt.Errorf("%s is a copy of %s, whose processes go on: stop them with antipode cluster stop --dir %[2]s", o.Dir, p.elsewhere)
		}
	}
	return nil
}

func (o Options) end(ctx context.Context, name string) error {
	p, running, err := o.find(name)
	if err != nil || p.pid == 0 || p.elsewhere != "" {
		return err
	}
	if running {
		if err := p.end(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
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
