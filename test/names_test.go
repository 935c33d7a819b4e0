package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/failover/dns/bindtest"
	"antipode/geo"
	"antipode/test/devproc"
	"antipode/test/rest"
)

// goesOn is how long name servers are watched while a location is stopped: antipode dns asks the locations twice a second.
const goesOn = 2 * time.Second

// namesZone is the zone of both name servers, namesTTL how long their answers are kept, in seconds.
const (
	namesZone   = "storage.test"
	namesTTL    = 5
	namesSecret = "c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiBuYW1lcw=="
)

const namesConfig = `
listen: {dns: "127.0.0.1:%[2]d", metrics: "127.0.0.1:%[3]d"}
zone: storage.test
ttl: 5s
data: %[1]s/names
locations:
  - {location: northcentralus, addresses: [127.0.0.1], admin: ["127.0.0.1:%[4]d"]}
  - {location: southcentralus, addresses: [127.0.0.1], admin: ["127.0.0.1:%[5]d"]}
push:
  - {server: "127.0.0.1:%[6]d", key: antipode, secret_file: %[1]s/secret}
`

// nameServer is one of the two name servers, as dig sees it.
type nameServer struct {
	t    *testing.T
	name string
	port int
	// epoch is the highest that was answered.
	epoch geo.EpochNumber
}

// startNameServers runs a BIND, and antipode dns beside a deployment, which pushes to it with a signed update (RFC 2136, TSIG).
func startNameServers(t *testing.T, p *devproc.Process) []*nameServer {
	t.Helper()
	for _, command := range []string{"named", "dig"} {
		if _, err := exec.LookPath(command); err != nil {
			t.Skipf("%s is not installed: Debian has it in bind9 and bind9-dnsutils", command)
		}
	}
	dir := t.TempDir()
	free, err := devproc.FreePorts(t, 3)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"secret": namesSecret + "\n",
		"dns.yaml": fmt.Sprintf(namesConfig, dir, free[1], free[2],
			p.PortBase+devproc.NorthPorts+devproc.AdminOffset, p.PortBase+devproc.SouthPorts+devproc.AdminOffset, free[0]),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, bindtest.Write(dir, free[0], namesZone, namesSecret, ""))
	out := []*nameServer{{t: t, name: "BIND", port: free[0]}, {t: t, name: "antipode dns", port: free[1]}}
	for i, args := range [][]string{
		bindtest.Command(dir),
		{devproc.Binary(), "dns", "--config", filepath.Join(dir, "dns.yaml")},
	} {
		log := filepath.Join(dir, strconv.Itoa(i)+".log")
		child, err := devproc.Run(out[i].name, log, args[0], args[1:]...)
		require.NoError(t, err)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("output of %s:\n%s", out[i].name, child.Output())
			}
			require.NoError(t, child.Kill9())
		})
	}
	return out
}

// dig returns the values that a name server answers with; the TTL of each must be the one of the zone.
func (s *nameServer) dig(ctx context.Context, kind, name string) ([]string, error) {
	c := exec.CommandContext(ctx, "dig", "@127.0.0.1", "-p", strconv.Itoa(s.port), "+noall", "+answer", "+tries=3", "+time=10", kind, name+"."+namesZone)
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", s.name, err, out)
	}
	var values []string
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) < 5 {
			return nil, fmt.Errorf("%s: %q", s.name, line)
		}
		if words[1] != strconv.Itoa(namesTTL) {
			return nil, fmt.Errorf("%s: the TTL of %q", s.name, line)
		}
		values = append(values, strings.Join(words[4:], " "))
	}
	return values, nil
}

// leads reports whether the names of the account lead to a location, in an epoch. The epoch that is answered never goes back.
func (s *nameServer) leads(ctx context.Context, to, secondary geo.Location, epoch geo.EpochNumber) error {
	account := string(rest.DevAccount)
	text, err := s.dig(ctx, "TXT", "_epoch."+account+".blob")
	if err != nil {
		return err
	}
	if len(text) != 1 {
		return fmt.Errorf("%s: no epoch record: %q", s.name, text)
	}
	var now geo.EpochNumber
	if _, err := fmt.Sscanf(text[0], `"v=antipode1 epoch=%d@`, &now); err != nil {
		return fmt.Errorf("%s: %q: %w", s.name, text[0], err)
	}
	require.GreaterOrEqual(s.t, now, s.epoch, "%s went back: %q", s.name, text[0])
	s.epoch = now
	want := fmt.Sprintf(`"v=antipode1 epoch=%d@%s location=%s role=primary secondary=%s"`, epoch, to, to, secondary)
	primary, err := s.dig(ctx, "CNAME", account+".table")
	second, secondErr := s.dig(ctx, "CNAME", account+geo.SecondarySuffix+".table")
	if err = errors.Join(err, secondErr); err != nil {
		return err
	}
	got := []string{text[0], strings.Join(primary, ","), strings.Join(second, ",")}
	if all := []string{want, "table." + string(to) + ".store." + namesZone + ".", "table." + string(secondary) + ".store." + namesZone + "."}; strings.Join(got, "\n") != strings.Join(all, "\n") {
		return fmt.Errorf("%s: it leads to %q, not to %q", s.name, got, all)
	}
	return nil
}

// Names follow failovers at a real BIND, which antipode dns feeds by signed updates, and at antipode dns itself, as dig
// sees them. With either location stopped both go on answering, and follow the promotion of the other one. No answer has
// a lower epoch than one before. The TTL is that of the zone, so a client's resolver sees a move that much later at most.
//
// Capability: Names: Both name servers across failovers, as `dig` sees them.
func TestBINDFollowsFailovers(t *testing.T) {
	p := startDev(t)
	servers := startNameServers(t, p)
	ctl := p.Admin()
	lead := func(to, secondary geo.Location, epoch geo.EpochNumber) {
		t.Helper()
		for _, s := range servers {
			eventually(t, arriveWait, s.name+" leads to "+string(to), func(ctx context.Context) error { return s.leads(ctx, to, secondary, epoch) })
		}
	}
	goOn := func(to, secondary geo.Location, epoch geo.EpochNumber) {
		t.Helper()
		for until := time.Now().Add(goesOn); time.Now().Before(until); {
			for _, s := range servers {
				require.NoError(t, s.leads(t.Context(), to, secondary, epoch))
			}
		}
	}
	lead(north, south, 1)
	failover(t, ctl, admin.Failover{Type: admin.FailoverPlanned}, south)
	lead(south, north, 2)

	_, err := ctl.StopLocation(t.Context(), north)
	require.NoError(t, err)
	goOn(south, north, 2)
	_, err = ctl.StartLocation(t.Context(), north)
	require.NoError(t, err)
	eventually(t, clusterWait, "the north has followed", func(ctx context.Context) error {
		g, err := ctl.GeoReplication(ctx, rest.DevAccount)
		if err == nil && (g.Stats == nil || !g.Stats.CanPlannedFailover) {
			err = fmt.Errorf("%+v", g)
		}
		return err
	})
	_, err = ctl.StopLocation(t.Context(), south)
	require.NoError(t, err)
	goOn(south, north, 2)
	failover(t, ctl, admin.Failover{Type: admin.FailoverUnplanned, To: north}, north)
	lead(north, south, 3)
	goOn(north, south, 3)
}
