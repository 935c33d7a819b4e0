package proxy

import (
	"errors"
	"net"
	"strconv"
	"syscall"
)

// port keeps a loopback port for a listener that comes and goes: a socket that is bound and
// does not listen. Who connects meanwhile is refused, and nobody else is given the port.
type port struct {
	socket  int
	address string
}

func reserve() (*port, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// Both this socket and the listener, for which net.Listen sets it too, must allow it.
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var name syscall.Sockaddr
	if err == nil {
		name, err = syscall.Getsockname(fd)
	}
	in, ok := name.(*syscall.SockaddrInet4)
	if err == nil && !ok {
		err = errors.New("a loopback socket has no address")
	}
	if err != nil {
		return nil, errors.Join(err, syscall.Close(fd))
	}
	return &port{fd, net.JoinHostPort("127.0.0.1", strconv.Itoa(in.Port))}, nil
}

func (p *port) release() error { return syscall.Close(p.socket) }
