package starved

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// Environment of a neighbour: what it does, and for one that syncs its file.
const (
	roleEnv = "ANTIPODE_STARVED_ROLE"
	fileEnv = "ANTIPODE_STARVED_FILE"

	roleSpin = "spin"
	roleSync = "sync"
)

// How many neighbours there are.
const (
	spinnersPerCPU = 2
	syncers        = 2
)

// syncBytes is what a neighbour of the disk writes before each sync. Its file stays that
// long.
const syncBytes = 1 << 20

// neighbour turns this process into a neighbour if it was started as one; it never returns
// then. TestMain calls it first.
func neighbour() {
	switch os.Getenv(roleEnv) {
	case roleSpin:
		for { //nolint:staticcheck // Spinning is what it is for.
		}
	case roleSync:
		fmt.Fprintln(os.Stderr, syncForEver(os.Getenv(fileEnv)))
		os.Exit(1)
	}
}

func syncForEver(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	data := make([]byte, syncBytes)
	for {
		if _, err := f.WriteAt(data, 0); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
}

// neighbours are the processes that starve the machine.
type neighbours []*exec.Cmd

// moveIn starts the neighbours. Their files are in dir. moveOut must follow, also after an
// error.
func moveIn(dir string) (out neighbours, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	start := func(env ...string) error {
		cmd := exec.Command(self)
		cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
		// A test that is itself killed must leave no neighbour behind.
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return err
		}
		out = append(out, cmd)
		return nil
	}
	for range spinnersPerCPU * runtime.NumCPU() {
		if err := start(roleEnv+"="+roleSpin, "GOMAXPROCS=1"); err != nil {
			return out, err
		}
	}
	for i := range syncers {
		file := filepath.Join(dir, fmt.Sprintf("neighbour-%d", i))
		if err := start(roleEnv+"="+roleSync, fileEnv+"="+file); err != nil {
			return out, err
		}
	}
	return out, nil
}

// moveOut ends the neighbours and waits for them. One that ended before is an error.
func (n neighbours) moveOut() error {
	var errs []error
	for _, cmd := range n {
		errs = append(errs, cmd.Process.Kill())
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
			errs = append(errs, fmt.Errorf("a neighbour ended by itself: %w", err))
		}
	}
	return errors.Join(errs...)
}
