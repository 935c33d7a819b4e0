package listen

import (
	"errors"
	"syscall"
)

// Remedy is what to do about an address on which nothing can listen, for the end of an error's text. ports names where an
// operator chooses the ports. Other ports help neither an address of another machine, nor a user who may not have any
// low port.
func Remedy(err error, ports string) string {
	switch {
	case errors.Is(err, syscall.EACCES):
		return "this user may not listen on so low a port: choose ports from 1024 on with " + ports + ", or give the process CAP_NET_BIND_SERVICE"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "no interface of this machine has that address: choose one that it has"
	}
	return "stop what uses the port, or choose others with " + ports
}
