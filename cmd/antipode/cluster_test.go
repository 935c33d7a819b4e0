package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/command"
	"antipode/server/cluster"
)

// A start again is with the ports, the witness and the zone of before, but for what the command line gives.
func TestStartAgainAsBefore(t *testing.T) {
	o := cluster.Options{Dir: t.TempDir(), PortBase: 15000, Witness: true, DNSZone: "names.test"}
	_, err := o.Prepare(nil)
	require.NoError(t, err)
	f := clusterFlags{dir: o.Dir, portBase: portBaseDefault, dnsZone: devZone}
	was, err := f.as(func(string) bool { return false })
	require.NoError(t, err)
	require.Equal(t, o, was)
	require.Equal(t, clusterFlags{dir: o.Dir, portBase: 15000, witness: true, dnsZone: "names.test"}, f)
	f = clusterFlags{dir: o.Dir, portBase: 16000}
	_, err = f.as(func(string) bool { return true })
	require.NoError(t, err)
	require.Equal(t, clusterFlags{dir: o.Dir, portBase: 16000}, f)
	require.Contains(t, witnessChanged(true, false), "Without the witness of before")
	require.Contains(t, witnessChanged(false, true), "With a witness from now on")
	require.Empty(t, witnessChanged(true, true))

	f = clusterFlags{dir: t.TempDir(), portBase: 17000}
	_, err = f.as(func(string) bool { return false })
	require.NoError(t, err, "a new one")
	require.Equal(t, 17000, f.portBase)
	f.portBase = 65536
	require.ErrorContains(t, startCluster(io.Discard, f, cluster.Options{}), "--port-base 65536: want 1 to ")
}

// The status of a cluster has a line for each process, and one for why it does not run. It is an error unless all run.
func TestClusterStatus(t *testing.T) {
	runs := cluster.Process{Name: "gateway", State: cluster.Running, PID: 7, Address: "127.0.0.1:10080", Log: "c/gateway/log"}
	ended := cluster.Process{Name: "northcentralus-1", State: cluster.Exited, Address: "127.0.0.1:11080", Why: "no port", Log: "c/northcentralus-1/log"}
	var out bytes.Buffer
	require.NoError(t, showCluster(&out, []cluster.Process{runs}, formText, "antipodectl --admin X", "start"))
	require.Contains(t, out.String(), "All run. What they say of the data: antipodectl --admin X check\n")
	out.Reset()
	require.EqualError(t, showCluster(&out, []cluster.Process{runs, ended}, formText, "", "antipode cluster start --dir c"),
		"1 of 2 processes do not run or do not answer; antipode cluster start --dir c starts what does not run")
	require.Equal(t, `PROCESS           STATE    PID  ANSWERS AT       LOG
gateway           running  7    127.0.0.1:10080  c/gateway/log
northcentralus-1  ended    -    127.0.0.1:11080  c/northcentralus-1/log
northcentralus-1: no port
`, out.String())
	out.Reset()
	require.Error(t, showCluster(&out, []cluster.Process{ended}, formJSON, "", ""))
	silent := cluster.Process{Name: "gateway", State: cluster.Silent, PID: 7}
	require.EqualError(t, showCluster(io.Discard, []cluster.Process{silent, runs}, formText, "", "start"),
		"1 of 2 processes do not run or do not answer: their logs say why", "a start does not start it again")
	require.JSONEq(t, `[{"name":"northcentralus-1","state":"ended","address":"127.0.0.1:11080","why":"no port","log":"c/northcentralus-1/log"}]`, out.String())

	cmd := root()
	cmd.SetArgs([]string{"cluster", "status", "--dir", t.TempDir()})
	err := cmd.Execute()
	require.ErrorContains(t, err, "no cluster was started in")
	require.Equal(t, command.Usage, command.CodeOf(err))

	o := cluster.Options{Dir: t.TempDir(), PortBase: 15000}
	_, err = o.Prepare(nil)
	require.NoError(t, err)
	cmd = root()
	cmd.SetOut(io.Discard)
	cmd.SetArgs([]string{"cluster", "status", "--dir", o.Dir})
	require.ErrorContains(t, cmd.Execute(), "cluster start --dir "+o.Dir+" starts what does not run")
}
