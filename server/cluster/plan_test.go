package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/config"
	"antipode/server/dev"
)

// The configurations pass `antipode config check` without a warning, no two processes listen on
// one address, and certificates are made once.
func TestPlan(t *testing.T) {
	o := Options{Dir: t.TempDir(), PortBase: 15000}
	members := o.plan()
	require.Len(t, members, 7)
	require.NoError(t, o.prepare(members))
	taken := map[string]string{}
	for _, m := range members[:6] {
		c, problems, err := config.Load(filepath.Join(o.folder(m.name), configFile))
		require.NoError(t, err)
		require.Empty(t, problems, "%s", m.name)
		for _, address := range []string{c.Listen.Node, c.Listen.Blob, c.Listen.Queue, c.Listen.Table, c.Listen.Admin, c.NATS.Client, c.NATS.Listen} {
			require.Empty(t, taken[address], "%s listens there, too", m.name)
			taken[address] = m.name
		}
	}
	d, problems, err := config.LoadGateway(filepath.Join(o.folder("gateway"), configFile))
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, "127.0.0.1:15002", d.Listen.Table)
	require.Equal(t, "127.0.0.1:17280", d.Locations[1].Nodes[2].Admin)
	require.Equal(t, dev.Ports{Host: host, Base: 16000}.Of(geo.Blob), o.NodePorts(0, 0).Of(geo.Blob), "node 1 has its location's ports")

	key := filepath.Join(o.folder("northcentralus-1"), nodeKey)
	before, err := os.ReadFile(key)
	require.NoError(t, err)
	require.NoError(t, o.prepare(members))
	after, err := os.ReadFile(key)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// R21: with a witness its configuration passes too, and every node has its address, through what is between them. Without
// one nothing names it.
func TestR21PlanWithAWitness(t *testing.T) {
	o := Options{Dir: t.TempDir(), PortBase: 15000, Witness: true, Lease: "3s"}
	o.between = func(from, to string, u Use, address string) string {
		if u == Leases {
			require.Equal(t, WitnessName, to)
			return "127.0.0.1:9"
		}
		return address
	}
	members := o.plan()
	require.Len(t, members, 8)
	require.NoError(t, o.prepare(members))
	w, problems, err := config.LoadWitness(filepath.Join(o.folder(WitnessName), configFile))
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, config.Duration("3s"), w.Lease)
	require.Equal(t, locations(), w.Locations)
	require.Contains(t, o.Ports(), w.Listen)
	_, err = tls.LoadX509KeyPair(w.TLS.Cert, w.TLS.Key)
	require.NoError(t, err)
	for _, m := range members[1:7] {
		c, problems, err := config.Load(filepath.Join(o.folder(m.name), configFile))
		require.NoError(t, err)
		require.Empty(t, problems, "%s", m.name)
		require.Equal(t, config.WitnessAddress{Location: WitnessName, Address: "127.0.0.1:9"}, c.Witness)
	}
	for _, m := range (Options{Dir: t.TempDir(), PortBase: 15000}).plan()[:6] {
		require.Empty(t, m.config.(config.Node).Witness)
	}
}

// The next start repairs one that ended between two files of a certificate: the key, which shows
// that a certificate exists, is never there without the other files.
func TestInterruptedCertificate(t *testing.T) {
	for range 10 { // Files used to be written in any order.
		for _, cut := range []string{caCert, nodeCert} {
			o := Options{Dir: t.TempDir(), PortBase: 15000}
			dir := o.folder("northcentralus-1")
			obstacle := filepath.Join(dir, cut)
			require.NoError(t, os.MkdirAll(obstacle, 0o755))
			require.Error(t, o.prepare(o.plan()))
			require.NoFileExists(t, filepath.Join(dir, nodeKey))
			require.NoError(t, os.Remove(obstacle))
			require.NoError(t, o.prepare(o.plan()))
			_, err := tls.LoadX509KeyPair(filepath.Join(dir, nodeCert), filepath.Join(dir, nodeKey))
			require.NoError(t, err)
		}
	}
}

// A process that an earlier version started under another name refuses a start, which would take
// its port, and is ended by a stop.
func TestRetired(t *testing.T) {
	o := Options{Dir: t.TempDir(), PortBase: 15000}
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	started, err := startOf(cmd.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, write(o.folder("former"), file{pidFile, fmt.Appendf(nil, "%d %s\n", cmd.Process.Pid, started)}))
	require.ErrorContains(t, Start(t.Context(), o), "former runs in "+o.Dir+" and is no part of what is to start")
	require.NoError(t, Stop(t.Context(), o))
	require.NoFileExists(t, filepath.Join(o.folder("former"), pidFile))
	require.Error(t, cmd.Wait(), "it was ended by a signal")
}

// A start with another port base is refused while a process of the cluster runs, and leaves its configuration as it is: the
// start would wait for it at ports on which it never listens. Once none runs the ports may change.
//
// Capability: Build and run: A location that is away is named.
func TestOtherPortsOfARunningCluster(t *testing.T) {
	o := Options{Dir: t.TempDir(), PortBase: 15000}
	require.NoError(t, o.prepare(o.plan()))
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	started, err := startOf(cmd.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, write(o.folder("southcentralus-2"), file{pidFile, fmt.Appendf(nil, "%d %s\n", cmd.Process.Pid, started)}))
	require.NoError(t, o.samePorts(o.plan()))
	file := filepath.Join(o.folder(GatewayName), configFile)
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	o.PortBase = 16000
	require.EqualError(t, Start(t.Context(), o), "southcentralus-2 runs in "+o.Dir+
		" with other ports, or another witness: leave out --port-base and --witness, or stop it first with antipode cluster stop --dir "+o.Dir)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	o.PortBase, o.Witness = 15000, true
	require.ErrorContains(t, Start(t.Context(), o), "southcentralus-2 runs in "+o.Dir+" with other ports, or another witness")
	o.Witness = false
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.NoError(t, o.samePorts(o.plan()))
}

// freeBase returns a port base at which nothing listens.
func freeBase(t *testing.T) int {
	t.Helper()
	for range 1000 {
		o := Options{Dir: t.TempDir(), PortBase: 20000 + rand.IntN(10000), Witness: true, DNSZone: "names.test"}
		if o.portsFree(t.Context()) == nil {
			return o.PortBase
		}
	}
	t.Fatal("no free ports")
	return 0
}

// A start whose ports another process has is refused before anything is started, in one line that names the port and the
// option: the answers of another cluster's processes would pass for those of this one, and one that cannot listen would end.
func TestPortsOfAnother(t *testing.T) {
	for what, offset := range map[string]int{
		"admin of gateway": 80, "table of gateway": 2, "the name server": 53, "metrics of names": 54, "the witness": 40, "metrics of witness": 41,
		"NATS of northcentralus-1": 1020, "NATS clients of southcentralus-3": 2222, "calls of southcentralus-1": 2010, "forwarded requests of northcentralus-2": 1130,
	} {
		base := freeBase(t)
		other, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(base+offset)))
		require.NoError(t, err)
		o := Options{Dir: t.TempDir(), PortBase: base, Binary: "true", Witness: true, DNSZone: "names.test"}
		require.EqualError(t, Start(t.Context(), o),
			"cannot listen on "+other.Addr().String()+" ("+what+"): another process does; stop what uses the port, or choose others with --port-base")
		for _, m := range o.plan() {
			require.NoFileExists(t, filepath.Join(o.folder(m.name), pidFile))
		}
		require.NoError(t, other.Close())
	}
	o := Options{Dir: t.TempDir(), PortBase: freeBase(t), DNSZone: "names.test"}
	udp, err := net.ListenPacket("udp", o.Gateway().DNS())
	require.NoError(t, err)
	defer func() { require.NoError(t, udp.Close()) }()
	require.ErrorContains(t, o.portsFree(t.Context()), "another process does")
}

// A start of which a process ends names it, in its own words, and leaves the others; the status shows them.
func TestOthersOfAFailedStartGoOn(t *testing.T) {
	o := Options{Dir: t.TempDir(), PortBase: freeBase(t), DNSZone: "names.test", Binary: filepath.Join(t.TempDir(), "antipode")}
	script := "#!/bin/sh\ncase \"$3\" in *northcentralus-1*) echo starts; echo antipode: no port; echo; exit 1;; esac\nexec sleep 60\n"
	require.NoError(t, os.WriteFile(o.Binary, []byte(script), 0o700))
	t.Cleanup(func() { require.NoError(t, Stop(context.Background(), o)) })
	log := filepath.Join(o.folder("northcentralus-1"), "log")
	err := Start(t.Context(), o)
	require.EqualError(t, err, "northcentralus-1 ended: no port ("+log+")\n"+
		"the other 7 run; mend the cause and give the same command again, or end all with: antipode cluster stop --dir "+o.Dir)
	pid, readErr := os.ReadFile(filepath.Join(o.folder(GatewayName), pidFile))
	require.NoError(t, readErr)
	require.Regexp(t, `^\d+\n$`, string(pid), "people give it to kill")
	_, err = EnsureAccount(t.Context(), o, wire.NewAccount{Name: "photos"})
	require.ErrorAs(t, err, new(*Ended))
	as, err := Existing(o.Dir)
	require.NoError(t, err)
	require.Equal(t, Options{Dir: o.Dir, PortBase: o.PortBase, DNSZone: o.DNSZone}, as)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	states := map[State]int{}
	for _, p := range Status(ctx, as) {
		states[p.State]++
		require.Equal(t, p.Name == "northcentralus-1", p.State == Exited, p)
		require.Equal(t, p.State == Exited, p.PID == 0, p)
		require.NotEmpty(t, p.Why)
	}
	require.Equal(t, map[State]int{Silent: 7, Exited: 1}, states)
	require.NoError(t, os.WriteFile(o.Binary, []byte("#!/bin/sh\n"), 0o700))
	require.ErrorContains(t, Start(t.Context(), o), "northcentralus-1 ended: no error in its log", "that of before is not taken for one")
	require.NoError(t, Stop(t.Context(), o))
	for _, p := range Status(ctx, as) {
		require.Equal(t, Stopped, p.State, p)
	}
}

// The folder of a cluster has what the cluster was started with, with a witness or without.
func TestExisting(t *testing.T) {
	_, err := Existing(t.TempDir())
	require.ErrorIs(t, err, fs.ErrNotExist)
	o := Options{Dir: t.TempDir(), PortBase: 15000, Witness: true, Lease: "3s", DNSZone: "names.test"}
	require.NoError(t, o.prepare(o.plan()))
	as, err := Existing(o.Dir)
	require.NoError(t, err)
	require.Equal(t, o, as)
	o.Witness, o.DNSZone = false, ""
	require.NoError(t, o.prepare(o.plan()))
	as, err = Existing(o.Dir)
	require.NoError(t, err)
	require.False(t, as.Witness)
	require.Empty(t, as.DNSZone)
}

// With a zone a name server runs, whose configuration passes, and the nodes and the gateway know the zone; without one none
// does. A stop without the zone ends it too.
func TestPlanWithNames(t *testing.T) {
	o := Options{Dir: t.TempDir(), PortBase: 15000, DNSZone: "names.test"}
	members := o.plan()
	require.Len(t, members, 8)
	require.NoError(t, o.prepare(members))
	d, problems, err := config.LoadDNS(filepath.Join(o.folder(NamesName), configFile))
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, "127.0.0.1:15053", d.Listen.DNS)
	require.Equal(t, []string{"127.0.0.1:16080", "127.0.0.1:16180", "127.0.0.1:16280"}, d.Locations[0].Admin)
	c, problems, err := config.Load(filepath.Join(o.folder("southcentralus-2"), configFile))
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Contains(t, c.Zones, geo.Zone("names.test"))
	require.Contains(t, c.Zones, geo.LocalZone)
	g, problems, err := config.LoadGateway(filepath.Join(o.folder(GatewayName), configFile))
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, c.Zones, g.Zones)

	names := exec.Command("sleep", "60")
	require.NoError(t, names.Start())
	started, err := startOf(names.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, write(o.folder(NamesName), file{pidFile, fmt.Appendf(nil, "%d %s\n", names.Process.Pid, started)}))
	require.NoError(t, Stop(t.Context(), Options{Dir: o.Dir}))
	require.Error(t, names.Wait(), "it was ended by a signal")
	for _, m := range (Options{Dir: t.TempDir(), PortBase: 15000}).plan() {
		require.NotEqual(t, NamesName, m.name)
	}
}

// A process is identified by its number and its start time, so that another process that has
// the number by now is not ended.
func TestOnlyOwnProcesses(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	require.NoError(t, os.MkdirAll(o.folder("n"), 0o755))
	record := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(o.folder("n"), pidFile), []byte(text), 0o600))
	}
	_, running, err := o.find("n")
	require.NoError(t, err)
	require.False(t, running)

	started, err := startOf(os.Getpid())
	require.NoError(t, err)
	self := strconv.Itoa(os.Getpid())
	record(self + " " + started + "\n")
	pid, err := o.PID("n")
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), pid)

	record(self + " " + started + "1\n") // The number is the same, the process another.
	require.NoError(t, o.end(t.Context(), "n"), "this test is not ended")
	record("nonsense")
	_, err = o.PID("n")
	require.ErrorContains(t, err, "remove it when none runs")
}

// The process files of a copied folder name the processes of the original one, which a stop in the copy does not end, not
// even of a copy that shares its files. The folder may move to another name while they run.
func TestCopiedFolderEndsNothing(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "original")}
	require.NoError(t, os.MkdirAll(o.folder("n"), 0o755))
	p := exec.Command("sh", append([]string{"-c", "read line", "sh"}, o.args(member{name: "n", command: "node"})...)...)
	in, err := p.StdinPipe()
	require.NoError(t, err)
	defer func() { _ = in.Close() }() // It is closed already.
	require.NoError(t, p.Start())
	started, err := startOf(p.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, write(o.folder("n"), file{pidFile, fmt.Appendf(nil, "%d %s\n", p.Process.Pid, started)}, file{configFile, nil}))

	copied := Options{Dir: filepath.Join(t.TempDir(), "copy")}
	require.NoError(t, os.MkdirAll(copied.folder("n"), 0o755))
	for _, name := range []string{pidFile, configFile} {
		require.NoError(t, os.Link(filepath.Join(o.folder("n"), name), filepath.Join(copied.folder("n"), name)))
	}
	pid, err := copied.PID("n")
	require.NoError(t, err)
	require.Zero(t, pid)
	require.EqualError(t, Stop(t.Context(), copied), copied.Dir+" is a copy of "+o.Dir+", whose processes go on: stop them with antipode cluster stop --dir "+o.Dir)

	linked := Options{Dir: filepath.Join(t.TempDir(), "link")}
	require.NoError(t, os.Symlink(o.Dir, linked.Dir))
	moved := Options{Dir: filepath.Join(t.TempDir(), "moved")}
	for i, is := range []Options{o, linked, moved} {
		if i == 2 {
			require.NoError(t, os.Rename(o.Dir, moved.Dir))
			require.NoError(t, os.MkdirAll(filepath.Join(o.folder("n"), "data"), 0o755), "a process writes to where it was")
		}
		pid, err = is.PID("n")
		require.NoError(t, err)
		require.Equal(t, p.Process.Pid, pid)
	}
	require.NoError(t, Stop(t.Context(), moved))
	require.Error(t, p.Wait(), "it was ended by a signal")
	require.NoError(t, Stop(t.Context(), copied), "nothing runs")
}
