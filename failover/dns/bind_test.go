package dns

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	msg "github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"antipode/failover/dns/bindtest"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/test/devproc"
)

// bindRecords are records of the zone that Antipode did not write.
const bindRecords = `taken.blob IN A 192.0.2.99
_epoch.foreign.blob IN TXT "v=spf1 -all"
foreign1-drill.blob IN A 192.0.2.98
foreign2-drill.blob IN CNAME elsewhere.test.
`

// bind is a BIND with the zone storage.test, which takes updates that are signed with key.
type bind struct {
	dir  string
	port int
	cmd  *exec.Cmd
	out  *os.File
}

// newBind makes the files of a BIND. The test is skipped where it is not installed.
func newBind(t *testing.T) *bind {
	t.Helper()
	if _, err := exec.LookPath("named"); err != nil {
		t.Skip("BIND is not installed: Debian has it in bind9; nothing here was tested against a real server")
	}
	b := &bind{dir: t.TempDir()}
	free, err := devproc.FreePorts(t, 1)
	require.NoError(t, err)
	b.port = free[0]
	require.NoError(t, bindtest.Write(b.dir, b.port, "storage.test", key.Secret, bindRecords))
	b.out, err = os.Create(filepath.Join(b.dir, "output"))
	require.NoError(t, err)
	t.Cleanup(func() {
		b.stop(t)
		require.NoError(t, b.out.Close())
		if text, err := os.ReadFile(filepath.Join(b.dir, "output")); t.Failed() {
			t.Logf("BIND: %s %v", text, err)
		}
	})
	return b
}

func (b *bind) addr() string { return fmt.Sprintf("127.0.0.1:%d", b.port) }

// start runs BIND, and returns when it answers.
func (b *bind) start(t *testing.T) {
	t.Helper()
	command := bindtest.Command(b.dir)
	b.cmd = exec.Command(command[0], command[1:]...)
	b.cmd.Stdout, b.cmd.Stderr = b.out, b.out
	require.NoError(t, b.cmd.Start())
	require.Eventually(t, func() bool {
		r, _, err := new(msg.Client).Exchange(query("storage.test.", msg.TypeSOA), b.addr())
		return err == nil && len(r.Answer) == 1
	}, time.Minute, 20*time.Millisecond, "BIND does not answer")
}

// stop ends BIND.
func (b *bind) stop(t *testing.T) {
	t.Helper()
	if b.cmd != nil {
		require.NoError(t, b.cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, b.cmd.Wait())
		b.cmd = nil
	}
}

// ask returns what BIND has for a name: the values of the records.
func (b *bind) ask(t *testing.T, name string, kind uint16) string {
	t.Helper()
	r, _, err := (&msg.Client{Net: "tcp"}).Exchange(query(name+".storage.test.", kind), b.addr())
	require.NoError(t, err)
	out := []string{msg.RcodeToString[r.Rcode]}
	for _, rr := range r.Answer {
		out = append(out, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	return strings.Join(out, " ")
}

// moved is a view in which pictures is in an epoch.
func moved(t *testing.T, n geo.EpochNumber, l geo.Location, r catalog.Redundancy) *View {
	v := openView(t, vfs.NewMem())
	require.NoError(t, v.Merge(l, []Entry{in("pictures", n, l, r)}))
	return v
}

// The records of a view are pushed to a real BIND, and a move changes them. A server that was away gets the newest
// state, and one that knows an older epoch changes nothing.
//
// Capability: Names: The same records at BIND by RFC 2136 with TSIG.
func TestBIND(t *testing.T) {
	b := newBind(t)
	b.start(t)
	v := moved(t, 1, north, catalog.RAGRS)
	p, seen, out := newTestPusher(v, newZone(t), b.addr(), key)
	defer p.peer.close()
	push := func() {
		t.Helper()
		err := p.step(t.Context())
		p.report(err)
		require.NoError(t, err, out.String())
	}
	push()
	require.Equal(t, []string{outcomeDone}, seen.taken())
	require.Equal(t, `NOERROR blob.north.store.storage.test. 192.0.2.1 192.0.2.2`, strings.ReplaceAll(b.ask(t, "pictures.blob", msg.TypeA), "192.0.2.2 192.0.2.1", "192.0.2.1 192.0.2.2"))
	require.Equal(t, `NOERROR queue.south.store.storage.test. 198.51.100.1`, b.ask(t, "pictures-secondary.queue", msg.TypeA))
	require.Equal(t, `NOERROR "v=antipode1 epoch=1@north location=north role=primary secondary=south"`, b.ask(t, "_epoch.pictures.table", msg.TypeTXT))

	// A move. Then the server is away for two more; it gets the last.
	require.NoError(t, v.Merge(south, []Entry{in("pictures", 2, south, catalog.RAGRS)}))
	push()
	require.Equal(t, `NOERROR blob.south.store.storage.test.`, b.ask(t, "pictures.blob", msg.TypeCNAME))
	require.Equal(t, []string{outcomeDone}, seen.taken())
	p.peer.close()
	b.stop(t)
	for n, l := range []geo.Location{north, south, north} {
		require.NoError(t, v.Merge(l, []Entry{in("pictures", geo.EpochNumber(3+n), l, catalog.GRS)}))
		p.report(p.step(t.Context()))
	}
	require.Equal(t, []string{outcomeUnreachable, outcomeUnreachable, outcomeUnreachable}, seen.taken())
	require.Equal(t, 1, strings.Count(out.String(), "level=ERROR"), out.String())
	b.start(t)
	push()
	require.Equal(t, []string{outcomeDone}, seen.taken(), "one update has the newest state")
	require.Equal(t, `NOERROR "v=antipode1 epoch=5@north location=north role=primary"`, b.ask(t, "_epoch.pictures.blob", msg.TypeTXT))
	require.Equal(t, "NXDOMAIN", b.ask(t, "pictures-secondary.blob", msg.TypeCNAME), "the secondary of GRS cannot be read")
	require.Equal(t, "NXDOMAIN", b.ask(t, "_epoch.pictures-secondary.blob", msg.TypeTXT))

	// Somebody who knows an older epoch, and the same again.
	stale, staleSeen, _ := newTestPusher(moved(t, 4, south, catalog.RAGRS), newZone(t), b.addr(), key)
	defer stale.peer.close()
	require.NoError(t, stale.step(t.Context()))
	require.Equal(t, []string{outcomeStale}, staleSeen.taken())
	p.all()
	push()
	require.Empty(t, seen.taken())
	require.Equal(t, `NOERROR blob.north.store.storage.test.`, b.ask(t, "pictures.blob", msg.TypeCNAME))
}

// An update whose prerequisite was read before another one changed the record is refused by BIND, and changes nothing:
// the pusher reads again and decides by what is there.
//
// Capability: Names: The same records at BIND by RFC 2136 with TSIG.
func TestBINDRefusesLateUpdate(t *testing.T) {
	b := newBind(t)
	b.start(t)
	z := newZone(t)
	for _, former := range []string{"", in("pictures", 1, north, catalog.RAGRS).Text(false)} {
		early, _, _ := newTestPusher(moved(t, 1, north, catalog.RAGRS), z, b.addr(), key)
		if former != "" {
			require.NoError(t, early.step(t.Context()))
		}
		// It read former; then the newest state is pushed, with a second name that former did not have.
		newest, _, _ := newTestPusher(moved(t, 5, south, catalog.RAGRS), z, b.addr(), key)
		require.NoError(t, newest.step(t.Context()))
		_, err := early.peer.exchange(t.Context(), z.update(in("pictures", 2, south, catalog.LRS), former))
		require.ErrorIs(t, err, errRaced)
		require.Equal(t, `NOERROR "v=antipode1 epoch=5@south location=south role=primary secondary=north"`, b.ask(t, "_epoch.pictures.blob", msg.TypeTXT))
		require.Equal(t, `NOERROR blob.south.store.storage.test.`, b.ask(t, "pictures.blob", msg.TypeCNAME))
		early.peer.close()
		newest.peer.close()
		if former == "" { // Back to nothing, for the second round.
			m := z.newUpdate()
			m.RemoveName([]msg.RR{z.txt(z.keyName("pictures"), "")})
			for _, secondary := range []bool{false, true} {
				for _, r := range z.records(in("pictures", 5, south, catalog.RAGRS), secondary) {
					m.RemoveName([]msg.RR{r.alias, r.text})
				}
			}
			_, err := early.peer.exchange(t.Context(), m)
			require.NoError(t, err)
			early.peer.close()
		}
	}
}

// Names that somebody else uses stay as they are; other accounts are pushed.
//
// Capability: Names: The same records at BIND by RFC 2136 with TSIG.
func TestBINDForeignRecords(t *testing.T) {
	b := newBind(t)
	b.start(t)
	v := openView(t, vfs.NewMem())
	require.NoError(t, v.Merge(north, []Entry{
		in("foreign", 1, north, catalog.GRS), in("pictures", 1, north, catalog.GRS), in("taken", 1, north, catalog.GRS),
	}))
	p, seen, out := newTestPusher(v, newZone(t), b.addr(), key)
	defer p.peer.close()
	require.NoError(t, p.step(t.Context()))
	require.ElementsMatch(t, []string{outcomeForeign, outcomeDone, outcomeForeign}, seen.taken())
	require.Equal(t, 2, strings.Count(out.String(), "level=WARN"))
	require.Equal(t, "NOERROR 192.0.2.99", b.ask(t, "taken.blob", msg.TypeA))
	require.Equal(t, "NXDOMAIN", b.ask(t, "_epoch.taken.blob", msg.TypeTXT))
	require.Equal(t, `NOERROR "v=spf1 -all"`, b.ask(t, "_epoch.foreign.blob", msg.TypeTXT))
	require.Equal(t, "NOERROR", b.ask(t, "foreign.blob", msg.TypeCNAME), "there is no record")
	require.Equal(t, "NOERROR blob.north.store.storage.test.", b.ask(t, "pictures.blob", msg.TypeCNAME))
}

// A wrong secret, an unknown key, a key that may not update, and a zone that BIND does not have: one line of the log says
// which, and nothing changes.
func TestBINDRefuses(t *testing.T) {
	b := newBind(t)
	b.start(t)
	elsewhere := zoneOptions()
	elsewhere.Origin, elsewhere.Servers = "other.test", nil
	other, err := NewZone(elsewhere)
	require.NoError(t, err)
	for _, c := range []struct {
		key  Key
		zone *Zone
		want string
	}{
		{Key{"antipode", "d3JvbmcK"}, newZone(t), outcomeKey},
		{Key{"nobody", key.Secret}, newZone(t), outcomeKey},
		{Key{"reader", key.Secret}, newZone(t), outcomeRefused},
		{key, other, outcomeRefused},
	} {
		p, seen, out := newTestPusher(moved(t, 1, north, catalog.GRS), c.zone, b.addr(), c.key)
		for range 2 {
			p.report(p.step(t.Context()))
		}
		require.Equal(t, []string{c.want, c.want}, seen.taken(), out.String())
		require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
		require.Equal(t, 1, p.Waiting())
		p.peer.close()
	}
	require.Equal(t, "NXDOMAIN", b.ask(t, "pictures.blob", msg.TypeCNAME))
}

// The names of an account's clone lead to its secondary, whether that can be read or not, follow a failover, and go with the
// secondary. One that was removed by hand comes back with the next comparison; what is right is not written again. One that
// knows an older epoch leaves them.
//
// Capability: Names: The same records at BIND by RFC 2136 with TSIG.
func TestBINDClone(t *testing.T) {
	b := newBind(t)
	b.start(t)
	v := moved(t, 1, north, catalog.GRS)
	p, seen, out := newTestPusher(v, newZone(t), b.addr(), key)
	defer p.peer.close()
	push := func(want ...string) {
		t.Helper()
		require.NoError(t, p.step(t.Context()), out.String())
		require.Equal(t, want, seen.taken())
	}
	leads := func(want geo.Location) {
		t.Helper()
		for _, s := range geo.Services {
			has := b.ask(t, "pictures-drill."+s.String(), msg.TypeCNAME)
			if want == "" {
				require.Equal(t, "NXDOMAIN", has)
				continue
			}
			require.Equal(t, "NOERROR "+s.String()+"."+string(want)+".store.storage.test.", has)
		}
		require.Equal(t, "NXDOMAIN", b.ask(t, "_epoch.pictures-drill.blob", msg.TypeTXT))
	}
	push(outcomeDone)
	leads(south)
	p.all()
	push()

	m := p.o.Zone.newUpdate()
	for _, s := range geo.Services {
		m.RemoveName([]msg.RR{p.o.Zone.cname(p.o.Zone.cloneName("pictures", s), s, south)})
	}
	_, err := p.peer.exchange(t.Context(), m)
	require.NoError(t, err)
	leads("")
	p.all()
	push(outcomeDone)
	leads(south)

	require.NoError(t, v.Merge(south, []Entry{in("pictures", 2, south, catalog.RAGRS)}))
	push(outcomeDone)
	leads(north)
	stale, staleSeen, _ := newTestPusher(moved(t, 1, north, catalog.GRS), newZone(t), b.addr(), key)
	defer stale.peer.close()
	require.NoError(t, stale.step(t.Context()))
	require.Equal(t, []string{outcomeStale}, staleSeen.taken())
	said, err := stale.clone(t.Context(), in("pictures", 1, north, catalog.GRS)) // Late: the account was read before it moved.
	require.NoError(t, err)
	require.Empty(t, said)
	leads(north)

	require.NoError(t, v.Merge(south, []Entry{in("pictures", 3, south, catalog.LRS)}))
	push(outcomeDone)
	leads("")
}

// Records of others at the name of a clone stay, and the account's own names are pushed all the same.
//
// Capability: Names: The same records at BIND by RFC 2136 with TSIG.
func TestBINDForeignClone(t *testing.T) {
	b := newBind(t)
	b.start(t)
	v := openView(t, vfs.NewMem())
	require.NoError(t, v.Merge(north, []Entry{in("foreign1", 1, north, catalog.GRS), in("foreign2", 1, north, catalog.GRS), in("pictures", 1, north, catalog.GRS)}))
	p, seen, out := newTestPusher(v, newZone(t), b.addr(), key)
	defer p.peer.close()
	require.NoError(t, p.step(t.Context()))
	require.ElementsMatch(t, []string{outcomeForeign, outcomeForeign, outcomeDone}, seen.taken())
	require.Equal(t, 2, strings.Count(out.String(), "level=WARN"))
	require.Equal(t, "NOERROR 192.0.2.98", b.ask(t, "foreign1-drill.blob", msg.TypeA))
	require.Equal(t, "NOERROR elsewhere.test.", b.ask(t, "foreign2-drill.blob", msg.TypeCNAME))
	require.Equal(t, "NOERROR blob.north.store.storage.test.", b.ask(t, "foreign1.blob", msg.TypeCNAME))
	require.Equal(t, "NOERROR blob.north.store.storage.test.", b.ask(t, "foreign2.blob", msg.TypeCNAME))
}
