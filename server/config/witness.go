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
	// Stamp is the name of the deployment as its certificates have it. Default "antipode".
	Stamp string `yaml:"stamp"`
	// Location is the name of the third place, as in the certificate of the witness: `antipode cert node --location`.
	Location geo.Location `yaml:"location"`
	// Locations are those that it keeps leases for.
	Locations []geo.Location `yaml:"locations"`
	// Data is the folder of the claims.
	Data string `yaml:"data"`
	// Listen is where nodes reach it, host:port, over TLS. Default ":10300".
	Listen string `yaml:"listen"`
	// Metrics is where it shows its metrics, host:port, plain HTTP. Default "127.0.0.1:10301".
	Metrics string `yaml:"metrics"`
	// Lease is how long a lease lives. Default 10s.
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
