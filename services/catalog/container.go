package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"antipode/geo"
	"antipode/services"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Container is the catalog's record of a table, a blob container or a queue.
type Container struct {
	Version int `json:"v"`
	// Name as it was created; the key holds it in lower case.
	Name string `json:"name"`
	// Epoch and Created are the generation (R8).
	Epoch   geo.EpochNumber `json:"epoch"`
	Created geo.Timestamp   `json:"created"`
	// Modified is the Last-Modified and ETag of the container.
	Modified geo.Timestamp `json:"modified"`
	// Deleted is when it was deleted, zero while it lives. The record stays, so that the name
	// cannot be created again at once and the other location learns of the deletion.
	Deleted geo.Timestamp `json:"deleted,omitempty"`
	// Metadata of a blob container or a queue, by name, names in lower case.
	Metadata []Pair `json:"metadata,omitempty"`
	// PublicAccess of a blob container: empty, "blob" or "container".
	PublicAccess string `json:"public,omitempty"`
	// Policies are the stored access policies, in the order in which they came.
	Policies []Policy `json:"policies,omitempty"`
	// Lease of a blob container: an action on it leaves Modified.
	Lease lease.Lease `json:"lease,omitzero"`
}

// Pair is one name and value of metadata.
type Pair struct {
	Name  string `json:"n"`
	Value string `json:"v"`
}

// Generation is the container's generation.
func (c *Container) Generation() keys.Generation {
	return keys.Generation{Epoch: c.Epoch, Created: c.Created}
}

// Over reports whether a generation of the container's name has ended: the record is that of its deletion, or of a
// later generation. What is over never returns.
func (c *Container) Over(g keys.Generation) bool {
	return g.Before(c.Generation()) || g == c.Generation() && c.Deleted != 0
}

// kindOf is the first part of a container's catalog name, so that the names of one
// service stand together.
func kindOf(s geo.Service) string { return s.String() + "/" }

// ContainerPartition is where the catalog keeps a container of a service.
func ContainerPartition(s geo.Service, a geo.Account, name string) keys.Partition {
	return keys.Partition{Service: geo.Catalog, Account: a, Object: kindOf(s) + keyName(s, name)}
}

// ContainersPrefix is the prefix of the rows of all containers of a service.
func ContainersPrefix(s geo.Service, a geo.Account) []byte {
	none := keys.AppendString(nil, "")
	return bytes.TrimSuffix(ContainerPartition(s, a, "").Append(nil), none)
}

// Prefix is the prefix of what is stored in the container.
func (c *Container) Prefix(s geo.Service, a geo.Account) []byte {
	return keys.AppendContainer(nil, s, a, keyName(s, c.Name), c.Generation())
}

// keyName is a name as keys and continuations hold it: tables are addressed and ordered
// without case (protocol/table.md 1.3), everything else as it is.
func keyName(s geo.Service, name string) string {
	if s == geo.Table {
		return keys.TableContainer(name)
	}
	return name
}

// ParseContainer decodes a stored container.
func ParseContainer(b []byte) (*Container, error) {
	var c Container
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("catalog container: %w", err)
	}
	if c.Version != formatVersion {
		return nil, wrongVersion(fmt.Sprintf("container %s", c.Name), c.Version)
	}
	if !c.Lease.Valid() {
		return nil, fmt.Errorf("catalog container %s: malformed lease", c.Name)
	}
	return &c, nil
}

func (c *Container) encode() ([]byte, error) {
	c.Version = formatVersion
	return json.Marshal(c)
}

func (c *Container) effect() (services.Effect, error) {
	v, err := c.encode()
	e := services.Effect{Ops: []change.Op{{Value: v}}}
	if c.Lease.Kind != lease.KindNone {
		e.Level = feature.Blobs
	}
	return e, err
}

// errorsOf returns the error rows for containers of a service.
type errorsOf struct{ exists, beingDeleted, notFound error }

func containerErrors(s geo.Service) errorsOf {
	switch s {
	case geo.Table:
		return errorsOf{storageerr.TableAlreadyExists, storageerr.TableBeingDeleted, storageerr.ResourceNotFound}
	case geo.Queue:
		return errorsOf{storageerr.QueueAlreadyExists, storageerr.QueueBeingDeleted, storageerr.QueueNotFound}
	}
	return errorsOf{storageerr.ContainerAlreadyExists, storageerr.ContainerBeingDeleted, storageerr.ContainerNotFound}
}

// Create makes a container. A deleted name is refused for NameRest after its deletion
// (protocol/table.md 9.2, protocol/blob.md C7). A queue that exists with the metadata that it is to have is
// ErrExistsAlike (protocol/queue.md 7.1).
type Create struct {
	Service      geo.Service
	Account      geo.Account
	Name         string
	NameRest     time.Duration
	Metadata     []Pair
	PublicAccess string
	// epoch is that of the generation.
	epoch geo.EpochNumber
	// Created is the result.
	Created *Container
}

// ErrExistsAlike: the queue exists with the metadata that it was to be created with. Nothing was changed.
var ErrExistsAlike = errors.New("catalog: the queue exists as it was to be created")

// errNoEpoch: Create was evaluated without InEpoch.
var errNoEpoch = errors.New("catalog: a generation needs the epoch of its account's gate")

// InEpoch implements services.Founder.
func (c *Create) InEpoch(e geo.EpochNumber) { c.epoch = e }

// Partition implements services.Write.
func (c *Create) Partition() keys.Partition { return ContainerPartition(c.Service, c.Account, c.Name) }

// Gone implements services.Write: the catalog itself is never deleted.
func (c *Create) Gone() error { return storageerr.AccountNotFound }

// Evaluate implements services.Write.
func (c *Create) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	if c.epoch == 0 {
		return services.Effect{}, errNoEpoch
	}
	rows := containerErrors(c.Service)
	v, ok, err := get.Get(c.Partition().Append(nil))
	if err != nil {
		return services.Effect{}, err
	}
	if ok {
		old, err := ParseContainer(v)
		switch {
		case err != nil:
			return services.Effect{}, err
		case old.Deleted == 0 && c.Service == geo.Queue && slices.Equal(old.Metadata, c.Metadata):
			return services.Effect{}, ErrExistsAlike
		case old.Deleted == 0:
			return services.Effect{}, rows.exists
		case at.Time().Sub(old.Deleted.Time()) < c.NameRest:
			return services.Effect{}, rows.beingDeleted
		}
	}
	c.Created = &Container{
		Name: c.Name, Epoch: c.epoch, Created: at, Modified: at, Metadata: c.Metadata, PublicAccess: c.PublicAccess,
	}
	return c.Created.effect()
}

// Delete marks a container deleted. The range of its service closes the generation
// before the deletion is answered (R8).
type Delete struct {
	Service geo.Service
	Account geo.Account
	Name    string
	// Deleted is the result.
	Deleted *Container
}

// Partition implements services.Write.
func (d *Delete) Partition() keys.Partition { return ContainerPartition(d.Service, d.Account, d.Name) }

// Gone implements services.Write.
func (d *Delete) Gone() error { return storageerr.AccountNotFound }

// Deletes implements services.Deletion.
func (d *Delete) Deletes() bool { return true }

// Evaluate implements services.Write.
func (d *Delete) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	old, err := GetContainer(get, d.Service, d.Account, d.Name)
	if err != nil {
		return services.Effect{}, err
	}
	old.Deleted = at
	d.Deleted = old
	return old.effect()
}

// SetMetadata replaces the metadata of a container (protocol/blob.md C4, protocol/queue.md 7.4). Its generation
// stays: what is in it is not touched.
type SetMetadata struct {
	Service geo.Service
	Account geo.Account
	Name    string
	// Metadata is what is stored; nothing clears it.
	Metadata []Pair
	// Modified is the result.
	Modified geo.Timestamp
}

// Partition implements services.Write.
func (w *SetMetadata) Partition() keys.Partition {
	return ContainerPartition(w.Service, w.Account, w.Name)
}

// Gone implements services.Write.
func (w *SetMetadata) Gone() error { return storageerr.AccountNotFound }

// Evaluate implements services.Write.
func (w *SetMetadata) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	c, err := GetContainer(get, w.Service, w.Account, w.Name)
	if err != nil {
		return services.Effect{}, err
	}
	c.Metadata, c.Modified = w.Metadata, at
	w.Modified = at
	return c.effect()
}

// GetContainer reads a living container; the service's "not found" row if there
// is none.
func GetContainer(get kv.Getter, s geo.Service, a geo.Account, name string) (*Container, error) {
	c, err := Lookup(get, s, a, name)
	if err != nil {
		return nil, err
	}
	if c == nil || c.Deleted != 0 {
		return nil, containerErrors(s).notFound
	}
	return c, nil
}

// Lookup reads the record of a container, deleted ones included; nil if the name was never used.
func Lookup(get kv.Getter, s geo.Service, a geo.Account, name string) (*Container, error) {
	v, ok, err := get.Get(ContainerPartition(s, a, name).Append(nil))
	if err != nil || !ok {
		return nil, err
	}
	return ParseContainer(v)
}
