package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"antipode/server/dev"
)

// ctlFor is how antipodectl is called for the admin port at an address, as a user can copy it: beside this program, which
// was started as program, and with the flag where the port is another than the one it tries by itself.
func ctlFor(program, address string) string {
	ctl := "antipodectl"
	if strings.ContainsRune(program, filepath.Separator) {
		ctl = filepath.Join(filepath.Dir(program), ctl)
	}
	if ip, err := netip.ParseAddrPort(address); err == nil && ip.Addr().IsUnspecified() {
		address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), ip.Port()).String()
	} else if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	if address == (dev.Ports{Host: "127.0.0.1", Base: portBaseDefault}).Admin() {
		return ctl
	}
	return ctl + " --admin http://" + address
}

// ephemeralFile has the range of ports that this machine gives connections which ask for no port.
const ephemeralFile = "/proc/sys/net/ipv4/ip_local_port_range"

// readEphemeral returns what is in that file; "" where it cannot be read.
func readEphemeral() string {
	text, _ := os.ReadFile(ephemeralFile)
	return string(text)
}

// warnEphemeral warns of ports from a base on that reach into that range: any connection of this machine may have one of
// them when they are wanted, and a start is refused then. baseMax is the greatest base: its last port is 65535.
func warnEphemeral(w io.Writer, base, baseMax int, text string) {
	var first, last int
	if n, err := fmt.Sscan(text, &first, &last); n != 2 || err != nil {
		return
	}
	span := 65535 - baseMax
	if base > last || base+span < first {
		return
	}
	advice := ""
	if below := first - span; below > 1 {
		advice = fmt.Sprintf(" Choose a base below %d.", below)
	}
	_, _ = fmt.Fprintf(w, "WARNING: --port-base %d: ports up to %d are used, and connections of this machine get theirs from %d to %d:\n"+
		"WARNING: a later start may find one of its ports in use.%s\n", base, base+span, first, last, advice)
}
