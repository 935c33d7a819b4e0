package test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
	"antipode/test/rest"
)

// failoverWait bounds the test of clients across failovers.
const failoverWait = 3 * time.Minute

// azure-storage 2.10.7, in the mode PRIMARY_THEN_SECONDARY, reads without one error through a planned failover and back,
// kill -9 of all nodes of the primary, the promotion of the secondary, and the return of the former primary, with a retry filter
// that does what the reference says (protocol/service.md 13). The client's own filters do so up to the promotion, at the address
// of a node: they retry connections that fail, but no 503, and so not what -secondary is answered afterwards.
//
// Capability: Clients: azure-storage 2.10.7 in the mode PRIMARY_THEN_SECONDARY.
func TestOldClientAcrossFailovers(t *testing.T) {
	d := startCluster(t)
	ctx, cancel := contextFor(t, failoverWait)
	defer cancel()
	r := d.startReader(ctx, npmFolder(t, "old-failover.cjs"))
	r.send("go on")

	failover(t, d.Admin(), admin.Failover{Type: admin.FailoverPlanned}, south)
	r.send("go on")
	failover(t, d.Admin(), admin.Failover{Type: admin.FailoverPlanned}, north)
	r.send("go on")

	for number := range 3 {
		d.signal(0, number, syscall.SIGKILL)
	}
	r.send("go on")
	r.send("alternate")
	failover(t, d.Admin(), admin.Failover{Type: admin.FailoverUnplanned, To: south}, south)
	r.send("go on")
	d.start()
	r.send("go on")
	r.end()
}

// failover asks for a failover of the account and waits until it is at a location, and a planned one is over. It asks again
// while the locations do not know yet that one of them has gone, or has followed the last failover.
func failover(t *testing.T, ctl *admin.Client, f admin.Failover, to geo.Location) {
	t.Helper()
	begun := false
	eventually(t, clusterWait, "the account is at "+string(to), func(ctx context.Context) error {
		a, err := ctl.Account(ctx, rest.DevAccount)
		if err != nil {
			return err
		}
		if !begun && a.Primary != to && a.Operation == "" { // What was in doubt may have begun.
			if _, err := ctl.UpdateAccount(ctx, rest.DevAccount, admin.UpdateAccount{Failover: &f}); err != nil {
				return err
			}
			begun = true
		}
		if a.Primary != to || f.Type == admin.FailoverPlanned && a.Operation != "" {
			return fmt.Errorf("it is at %s: %s", a.Primary, a.Operation)
		}
		return nil
	})
}

// reader is a script that reads all the time.
type reader struct {
	t       *testing.T
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// startReader starts the script at the gateway and at a node of the north, and returns when it reads.
func (d *deployment) startReader(ctx context.Context, dir string) *reader {
	r := &reader{t: d.t, process: exec.CommandContext(ctx, "node", "old-failover.cjs")}
	at := func(base int, s geo.Service, suffix string) string {
		return fmt.Sprintf("http://127.0.0.1:%d/%s%s", base+int(s-geo.Blob), rest.DevAccount, suffix)
	}
	node := d.NodePorts(0, 0).Base // The first that is killed.
	r.process.Dir = dir
	r.process.Env = append(os.Environ(), "ACCOUNT="+string(rest.DevAccount), "KEY="+rest.DevKey,
		"BLOB="+at(d.PortBase, geo.Blob, ""), "BLOB_NODE="+at(node, geo.Blob, ""), "BLOB_SECONDARY="+at(d.PortBase, geo.Blob, geo.SecondarySuffix),
		"TABLE="+at(d.PortBase, geo.Table, ""), "TABLE_NODE="+at(node, geo.Table, ""), "TABLE_SECONDARY="+at(d.PortBase, geo.Table, geo.SecondarySuffix))
	r.process.Stderr = os.Stderr
	var err error
	r.in, err = r.process.StdinPipe()
	require.NoError(d.t, err)
	out, err := r.process.StdoutPipe()
	require.NoError(d.t, err)
	r.out = bufio.NewReader(out)
	require.NoError(d.t, r.process.Start())
	d.t.Cleanup(func() { _ = r.process.Process.Kill() })
	r.expect("reading")
	return r
}

// expect requires that the script says a line.
func (r *reader) expect(want string) {
	r.t.Helper()
	line, err := r.out.ReadString('\n')
	require.NoError(r.t, err)
	require.Equal(r.t, want, strings.TrimSpace(line))
}

// send sends a command, and returns when all readers have gone on.
func (r *reader) send(command string) {
	r.t.Helper()
	_, err := fmt.Fprintln(r.in, command)
	require.NoError(r.t, err)
	r.expect("gone on")
}

// end ends the script, which has seen no error.
func (r *reader) end() {
	r.t.Helper()
	require.NoError(r.t, r.in.Close())
	out, err := io.ReadAll(r.out)
	require.NoError(r.t, err)
	require.NoError(r.t, r.process.Wait(), "%s", out)
	require.Contains(r.t, string(out), "all checks passed")
	r.t.Logf("%s", out)
}
