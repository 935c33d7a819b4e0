package devproc

import (
	"fmt"
	"syscall"
)

// Holder keeps ports until it runs what it was given to clean up: a test, until it ends.
type Holder interface{ Cleanup(release func()) }

// Held is the Holder of those that are no test. The zero value holds nothing; what it holds when the process ends is free.
type Held struct{ release []func() }

// Cleanup implements Holder.
func (h *Held) Cleanup(release func()) { h.release = append(h.release, release) }

// Release gives all back.
func (h *Held) Release() {
	for _, f := range h.release {
		f()
	}
	h.release = nil
}

// claim makes addresses the caller's own among all processes of this machine that look for ports by this package, until they
// are released, or none of them.
// That nothing listens there at this moment is not enough: a server that was killed to be started again leaves its ports free
// meanwhile, and tests of several packages run beside each other. A claim is an abstract socket that bears the address as its
// name, so that the kernel gives it back however the process ends.
func claim(addresses []string) (release func(), err error) {
	var sockets []int
	release = func() {
		for _, fd := range sockets {
			_ = syscall.Close(fd) // There is nothing in it that could be lost.
		}
	}
	for _, address := range addresses {
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
		if err == nil {
			sockets = append(sockets, fd)
			err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: "@antipode-test-" + address})
		}
		if err != nil {
			release()
			return nil, fmt.Errorf("devproc: claim of %s, which another test may have: %w", address, err)
		}
	}
	return release, nil
}
