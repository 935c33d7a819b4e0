package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"antipode/geo"
	"antipode/internal/identity"
)

// Witness is the contents of witness.yaml.
type Witness struct {
	// Stamp: as in node.yaml. Default: antipode.
	Stamp string `yaml:"stamp"`
	// Location: the third place, as in the certificate of the witness: antipode cert node --location. Required.
	Location geo.Location `yaml:"location"`
	// Locations: the two locations that it keeps leases for. Required.
	Locations []geo.Location `yaml:"locations"`
	// Data: the folder of the claims, an absolute path. Required. A witness does not start with claims that it cannot
	// read.
	Data string `yaml:"data"`
	// Listen: address for the nodes, over TLS. Default: :10300.
	Listen string `yaml:"listen"`
	// Metrics: address of /metrics and /healthz, plain HTTP: docs/metrics.md. Default: 127.0.0.1:10301. It shows
	// numbers alone, to everybody who reaches it.
	Metrics string `yaml:"metrics"`
	// Lease: how long a lease lives, 2 s to 5 min. Default: 10s. A node holds one for four fifths of that.
	Lease Duration `yaml:"lease"`
	TLS   TLS      `yaml:"tls"`
}

// LoadWitness reads the file of a witness: see Load.
func LoadWitness(path string) (Witness, Problems, error) { return load[Witness](path) }

// ParseWitness reads the text of a witness.yaml: see Parse.
func ParseWitness(data []byte) (Witness, Problems, error) { return parse[Witness](data) }

func (c Witness) withDefaults() Witness {
	if c.Stamp == "" {
		c.Stamp = "antipode"
	}
	if c.Listen == "" {
		c.Listen = ":10300"
	}
	if c.Metrics == "" {
		c.Metrics = "127.0.0.1:10301"
	}
	if c.Lease == "" {
		c.Lease = "10s"
	}
	return c
}

// Bounds of a lease: with less a slow call would end it, with more a promotion would take too long.
const (
	leaseLeast = 2 * time.Second
	leaseMost  = 5 * time.Minute
)

func (c Witness) validate(w *walker) {
	if !identity.ValidLabel(c.Stamp) {
		w.bad("stamp", "write "+identity.LabelWords)
	}
	if !identity.ValidLabel(string(c.Location)) {
		w.bad("location", "write the name of the third place, "+identity.LabelWords+", such as westeurope")
	}
	if len(c.Locations) != 2 {
		w.bad("locations", "write the two locations of the pair, such as [northcentralus, southcentralus]")
	}
	for i, l := range c.Locations {
		at := fmt.Sprintf("locations[%d]", i)
		switch {
		case !identity.ValidLabel(string(l)):
			w.bad(at, "write "+identity.LabelWords+", such as northcentralus")
		case l == c.Location:
			w.bad(at, "is the place of the witness: the two would fail together; write a third place")
		case slices.Index(c.Locations, l) < i:
			w.bad(at, "is there twice: write each location once")
		}
	}
	if !filepath.IsAbs(c.Data) {
		w.bad("data", "write the whole path of a folder, from /")
	}
	w.address("listen", c.Listen, false)
	w.address("metrics", c.Metrics, false)
	if life, err := time.ParseDuration(string(c.Lease)); err != nil || life < leaseLeast || life > leaseMost {
		w.bad("lease", fmt.Sprintf("write a span of time from %s to %s, such as 10s", leaseLeast, leaseMost))
	}
	w.tls(c.TLS)
}
