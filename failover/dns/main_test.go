package dns

import (
	"flag"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/geo"
	"antipode/services/catalog"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files; then read the diff")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	north geo.Location = "north"
	south geo.Location = "south"
	zone  geo.Zone     = "storage.test"
)

var quiet = slog.New(slog.DiscardHandler)

// counts is an Observer that drops everything.
type counts struct{}

func (counts) Answered(string, string, string) {}
func (counts) Failed()                         {}
func (counts) Pushed(string, string)           {}

// in returns an entry of an account whose primary is l, with the other location as its secondary.
func in(name geo.Account, number geo.EpochNumber, l geo.Location, r catalog.Redundancy) Entry {
	e := Entry{Account: name, Epoch: geo.Epoch{Number: number, Location: l}, Redundancy: r}
	if r.Geo() {
		e.Secondary = map[geo.Location]geo.Location{north: south, south: north}[l]
	}
	return e
}

func openView(t require.TestingT, fs vfs.FS) *View {
	v, err := OpenView(fs, "names", quiet)
	require.NoError(t, err)
	return v
}

// filled is a view of three accounts, one of each redundancy.
func filled(t require.TestingT) *View {
	v := openView(t, vfs.NewMem())
	require.NoError(t, v.Merge(north, []Entry{
		in("pictures", 3, north, catalog.RAGRS), in("mail", 1, south, catalog.GRS), in("alone", 2, south, catalog.LRS),
	}))
	return v
}

func addrs(list ...string) (out []netip.Addr) {
	for _, text := range list {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

func zoneOptions() ZoneOptions {
	return ZoneOptions{
		Origin:  zone,
		Servers: []Host{{"ns1.storage.test", addrs("192.0.2.53", "2001:db8::53")}, {"ns.b.storage.test", addrs("192.0.2.54")}, {Name: "ns.elsewhere.example", Addresses: addrs("192.0.2.55")}},
		Locations: []Place{
			{north, addrs("192.0.2.1", "2001:db8::1", "192.0.2.2")}, {south, addrs("198.51.100.1")},
		},
	}
}

func newZone(t require.TestingT) *Zone {
	z, err := NewZone(zoneOptions())
	require.NoError(t, err)
	return z
}
