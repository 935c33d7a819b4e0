package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"antipode/internal/clock"
	"antipode/internal/identity"
)

// Files in the folder of the authority, of a node, and of every process.
const (
	authorityDir = "ca"
	caCert       = "ca.crt"
	caKey        = "ca.key"
	nodeCert     = "node.crt"
	nodeKey      = "node.key"
	configFile   = "config.yaml"
	logFile      = "log"
	pidFile      = "pid"
	processFile  = "process" // when that of pidFile was started, and how long its log was
)

// Lifetimes of certificates.
const (
	caValid   = 10 * 365 * 24 * time.Hour
	nodeValid = 5 * 365 * 24 * time.Hour
)

// lock waits until no other start launches, and no stop ends, processes of the folder: of two starts each would start what the
// other one does, and the process files would name only half of it; a stop would miss what is launched behind it.
func (o Options) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(o.Dir)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return func() { _ = f.Close() }, nil // What is closed is unlocked.
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = clock.Wait(ctx, listenPause)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", o.Dir, err), f.Close())
		}
	}
}

// prepare writes the configurations, and the certificates that are missing.
func (o Options) prepare(members []member) error {
	authority, ca, err := o.authority()
	if err != nil {
		return err
	}
	for l := range locations() {
		for i := range nodes {
			n := node{l, i}
			if err := o.certify(authority, ca, n.name(), identity.Identity{Location: locations()[l], Node: n.id()}); err != nil {
				return err
			}
		}
	}
	if err := o.certify(authority, ca, GatewayName, identity.Identity{Gateway: GatewayName}); err != nil {
		return err
	}
	if o.Witness {
		if err := o.certify(authority, ca, WitnessName, identity.Identity{Location: WitnessName, Node: 1}); err != nil {
			return err
		}
	}
	for _, m := range members {
		text, err := yaml.Marshal(m.config)
		if err != nil {
			return err
		}
		if err := write(o.folder(m.name), file{configFile, text}); err != nil {
			return err
		}
	}
	return o.forget(members)
}

// forget removes the configurations of what is left out now, which would be taken for a part of the cluster later on. Last:
// a start that fails before has not dropped the witness.
func (o Options) forget(members []member) error {
	for _, name := range []string{WitnessName, NamesName} {
		if slices.ContainsFunc(members, func(m member) bool { return m.name == name }) {
			continue
		}
		if err := os.Remove(filepath.Join(o.folder(name), configFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// authority opens the cluster's authority, which is made if missing.
func (o Options) authority() (*identity.Authority, []byte, error) {
	dir := o.folder(authorityDir)
	cert, err := os.ReadFile(filepath.Join(dir, caCert))
	key, keyErr := os.ReadFile(filepath.Join(dir, caKey))
	pair := identity.Pair{Cert: cert, Key: key}
	if err = errors.Join(err, keyErr); errors.Is(err, fs.ErrNotExist) {
		if pair, err = identity.NewAuthority(stamp, clock.System{}.Now(), caValid); err != nil {
			return nil, nil, err
		}
		err = write(dir, file{caCert, pair.Cert}, file{caKey, pair.Key})
	}
	if err != nil {
		return nil, nil, err
	}
	a, err := identity.OpenAuthority(pair)
	return a, pair.Cert, err
}

// certify makes the certificate of a process unless it exists, which its key shows: the key is
// written last.
func (o Options) certify(a *identity.Authority, ca []byte, name string, id identity.Identity) error {
	dir := o.folder(name)
	if _, err := os.Stat(filepath.Join(dir, nodeKey)); err == nil {
		return nil
	}
	pair, err := a.NewNode(identity.NodeOptions{
		Identity: id, Hosts: []string{host}, Valid: nodeValid,
	}, clock.System{}.Now())
	if err != nil {
		return err
	}
	return write(dir, file{caCert, ca}, file{nodeCert, pair.Cert}, file{nodeKey, pair.Key})
}

// file is a file's name and its contents.
type file struct {
	name string
	data []byte
}

// write writes private files into a folder, made if missing, in the given order. If the process
// ends meanwhile, each file is either complete or missing.
func write(dir string, files ...file) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path+".new", f.data, 0o600); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}
