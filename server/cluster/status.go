package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"go.yaml.in/yaml/v3"

	"antipode/server/config"
)

// State is what a process of the cluster does.
type State string

// The states.
const (
	Running State = "running"
	// Silent: it runs, and does not answer at its admin port or that of its metrics.
	Silent State = "silent"
	// Exited: it was started, and not stopped.
	Exited State = "ended"
	// Stopped: it was stopped, or never started.
	Stopped State = "stopped"
)

// Process is what Status finds of one.
type Process struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// PID is 0 if it does not run.
	PID int `json:"pid,omitempty"`
	// Address is that of its admin port, or of its metrics.
	Address string `json:"address"`
	// Why is how it ended, or why it does not answer.
	Why string `json:"why,omitempty"`
	Log string `json:"log"`
}

// Existing returns the options that the cluster in a folder was started with last. fs.ErrNotExist: there is none.
func Existing(dir string) (Options, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Options{}, err
	}
	o := Options{Dir: dir}
	var gateway config.Gateway
	if err := o.read(GatewayName, &gateway); err != nil {
		return o, err
	}
	_, first, err := net.SplitHostPort(gateway.Listen.Blob)
	if err == nil {
		o.PortBase, err = strconv.Atoi(first)
	}
	if err != nil {
		return o, fmt.Errorf("%s: listen.blob: %w", filepath.Join(o.folder(GatewayName), configFile), err)
	}
	var witness config.Witness
	var names config.DNS
	uses, err := o.usesWitness()
	if err != nil {
		return o, err
	}
	if err = o.read(WitnessName, &witness); err == nil && uses {
		o.Witness, o.Lease = true, witness.Lease
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return o, err
	}
	if err = o.read(NamesName, &names); err == nil && slices.Contains(gateway.Zones, names.Zone) {
		o.DNSZone = names.Zone
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return o, err
	}
	return o, nil
}

// usesWitness reports whether a node is configured with a witness. An earlier version left the witness's own
// configuration in its folder as it was started without one.
func (o Options) usesWitness() (uses bool, err error) {
	for _, n := range o.nodeNames() {
		var c config.Node
		if err := o.read(n.name(), &c); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		uses = uses || c.Witness != (config.WitnessAddress{})
	}
	return uses, nil
}

// read reads the configuration of a process as it was written.
func (o Options) read(name string, into any) error {
	file := filepath.Join(o.folder(name), configFile)
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", file, err)
	}
	return err
}

// answering is where a process answers whether it is up.
type answering struct{ name, address string }

// answering lists the processes in the order in which a start waits for them.
func (o Options) answering() (out []answering) {
	for _, n := range o.nodeNames() {
		out = append(out, answering{n.name(), o.ports(n).Admin()})
	}
	if o.Witness {
		out = append(out, answering{WitnessName, o.WitnessMetrics()})
	}
	if o.DNSZone != "" {
		out = append(out, answering{NamesName, o.NamesMetrics()})
	}
	return append(out, answering{GatewayName, o.Gateway().Admin()})
}

// Status looks at all processes of a cluster at once, five seconds at most.
func Status(ctx context.Context, o Options) []Process {
	at := o.answering()
	out := make([]Process, len(at))
	var looked sync.WaitGroup
	for i, a := range at {
		looked.Go(func() {
			out[i] = Process{Name: a.name, State: Stopped, Address: a.address, Log: o.log(a.name)}
			p, running, err := o.find(a.name)
			switch {
			case err != nil:
				out[i].State, out[i].Why = Silent, err.Error()
			case running:
				out[i].State, out[i].PID = Running, p.pid
				if err := ask(ctx, a.address, "/healthz"); err != nil {
					out[i].State, out[i].Why = Silent, err.Error()
				}
			case p.elsewhere != "":
				out[i].Why = "this folder is a copy of " + p.elsewhere
			case p.pid != 0:
				out[i].State, out[i].Why = Exited, o.lastWords(a.name, p)
			}
		})
	}
	looked.Wait()
	return out
}
