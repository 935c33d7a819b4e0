package rig

import (
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"antipode/server/config"
)

// Reconfigure changes the configuration of a node that does not run.
func (r *Rig) Reconfigure(name string, change func(c *config.Node)) error {
	file := filepath.Join(r.opts.Dir, name, "config.yaml")
	c, _, err := config.Load(file)
	if err != nil {
		return err
	}
	change(&c)
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
