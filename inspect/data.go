package inspect

import (
	"fmt"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/services/queues"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/replica"
	"antipode/stamp/route"
)

// stored is the table of the ranges whose rows a folder has: no stamp has split one so far.
var stored = route.First() //nolint:gochecknoglobals // A table, never written.

// StateRow is one row of the state store.
type StateRow struct {
	Type  string      `json:"type"`
	Range geo.RangeID `json:"range"`
	// Kind of a row of the range itself is that of its key; that of a client's row account,
	// table, container, queue, entity, blob, staging, block or list.
	Kind string `json:"kind"`
	// Key and Value say what they hold. Keys of accounts are never shown.
	Key    string   `json:"key"`
	Value  string   `json:"value"`
	Chunks []string `json:"chunks,omitempty"`
	// Bytes of key and value as stored.
	Bytes int `json:"bytes"`
}

// Text implements Row.
func (r StateRow) Text() string {
	return fmt.Sprintf("r%d  %-10s  %s  %s", r.Range, r.Kind, orDash(r.Key), r.Value)
}

// describeRow decodes a row. An error means that it does not decode; Kind and Key are then
// as far as they were understood.
func describeRow(key, value []byte) (r StateRow, err error) {
	r = StateRow{Type: "row", Kind: "unknown", Key: fmt.Sprintf("%x", key), Bytes: len(key) + len(value)}
	if k, err := keys.ParseRangeKey(key); err == nil {
		r.Range, r.Kind = k.Range, string(k.Kind)
		r.Key, r.Value, err = describeRangeRow(k, value)
		return r, err
	}
	p, row, err := keys.ParsePartition(key)
	if err != nil {
		return r, err
	}
	r.Range, r.Key = stored.Of(p), partitionText(p)
	if p.Account == keys.LostAndFound {
		return r, r.describeFound(row, value)
	}
	if p.Account == keys.WrittenSince {
		r.Kind = "written"
		return r, nil
	}
	if p.Account == keys.LostChanges {
		return r, r.describeLost(p, value)
	}
	switch p.Service {
	case geo.Catalog:
		return r, r.describeCatalog(p, value)
	case geo.Table:
		r.Kind = "entity"
		e, err := tables.ParseRow(key, value)
		if err != nil {
			return r, err
		}
		list := entity.Read(e.Props)
		r.Key += fmt.Sprintf("/%q", e.RK)
		r.Value = fmt.Sprintf("%s, %d properties", e.Timestamp, list.Len())
		for ok := true; ok; {
			_, ok = list.Next()
		}
		return r, list.Err()
	case geo.Blob:
		i, err := blobs.DescribeRow(row, value)
		r.Kind, r.Value = orDash(i.Kind), i.Detail
		for _, c := range i.Chunks {
			r.Chunks = append(r.Chunks, c.ID.String())
		}
		return r, err
	case geo.Queue:
		i, err := queues.DescribeRow(row, value)
		r.Kind, r.Value = orDash(i.Kind), i.Detail
		if i.Of != "" {
			r.Key += " " + i.Of
		}
		return r, err
	}
	return r, fmt.Errorf("row of %s: no decoder", p.Service)
}

// describeFound describes a row of the lost-and-found.
func (r *StateRow) describeFound(of, value []byte) error {
	r.Kind = "found"
	f, err := change.ParseFound(value)
	r.Value = fmt.Sprintf("row %x of %d bytes, kept %s, %d chunks of it missing", of, len(f.Value), f.At, f.Missing)
	for _, c := range f.Chunks {
		r.Chunks = append(r.Chunks, c.ID.String())
	}
	return err
}

// describeLost describes a lost change, or what a range claims about them.
func (r *StateRow) describeLost(p keys.Partition, value []byte) error {
	if p.Object == "" {
		r.Kind = "claim"
		c, err := change.ParseLostClaim(value)
		r.Value = fmt.Sprintf("%d lost changes, %d perhaps answered, incomplete %t", c.Changes, c.Perhaps, c.Incomplete)
		return err
	}
	r.Kind = "lost"
	l, err := change.ParseLost(value)
	r.Value = fmt.Sprintf("%d rows, %d bytes, committed %s, surely answered %t", len(l.Ops), l.Bytes, l.At, l.Surely)
	return err
}

func (r *StateRow) describeCatalog(p keys.Partition, value []byte) error {
	if p.Object == catalog.AccountPartition(p.Account).Object {
		r.Kind = "account"
		a, err := catalog.ParseAccount(value)
		if err == nil {
			r.Value = fmt.Sprintf("%s, primary %s, secondary %s, epoch %d, active %t", a.Redundancy, a.Primary, a.Secondary, a.Epoch, a.Active)
		}
		return err
	}
	if catalog.IsProperties(p) {
		r.Kind = "properties"
		set, err := catalog.ParseProperties(value)
		if err == nil {
			r.Value = fmt.Sprintf("%d CORS rules", len(set.CORS))
		}
		return err
	}
	r.Kind = "container"
	c, err := catalog.ParseContainer(value)
	if err != nil {
		return err
	}
	r.Value = fmt.Sprintf("%q, generation %d.%s, modified %s", c.Name, c.Epoch, c.Created, c.Modified)
	if c.Deleted != 0 {
		r.Value += ", deleted " + c.Deleted.String()
	}
	if l := c.Lease.Describe(); l != "" {
		r.Value += ", " + l
	}
	return nil
}

func describeRangeRow(k keys.RangeKey, v []byte) (key, value string, err error) {
	switch k.Kind {
	case keys.KindApplied:
		a, err := change.ParseApplied(v)
		return "", fmt.Sprintf("index %d, term %d, group %s, last time %s", a.Index, a.Term, groupID(a.Group), a.Last), err
	case keys.KindMembers:
		m, err := replica.ParseMembers(v)
		text := fmt.Sprintf("next id %d", m.Next)
		for _, r := range m.List {
			role := "voter"
			if r.Learner {
				role = "learner"
			}
			text += fmt.Sprintf(", %s %d on node %d", role, r.ID, r.Node)
		}
		return "", text, err
	case keys.KindGate:
		g, err := change.ParseGate(v)
		return string(k.Account), gateText(g), err
	case keys.KindRetired:
		return "", "means nothing any more", nil
	case keys.KindClosed:
		h, err := change.ParseHead(v)
		return "", geo.Timestamp(h.Seq).String(), err
	case keys.KindHead, keys.KindTrimmed:
		h, err := change.ParseOutboxHead(v)
		return k.Stream.String(), fmt.Sprintf("%d, hash %016x, %d bytes and %d of payload up to it", h.Seq, uint64(h.Hash), h.Bytes, h.Payload), err
	case keys.KindCursor:
		c, err := change.ParseCursor(v)
		return k.Stream.String(), fmt.Sprintf("applied %d, hash %016x, %d closed times waiting", c.Applied.Seq, uint64(c.Applied.Hash), len(c.Pairs)), err
	case keys.KindStop:
		s, err := change.ParseStop(v)
		return k.Stream.String(), stopText(s), err
	case keys.KindCompared:
		as, err := change.ParseCompared(v)
		return "", fmt.Sprintf("incarnation %d", as), err
	case keys.KindLevels:
		l, err := change.ParseLevels(v)
		return "", levelsText(l), err
	case keys.KindAnswers:
		a, err := change.ParseAnswers(v)
		return "", fmt.Sprintf("%d groups pending, %d spans answered", len(a.Pending), len(a.Spans)), err
	case keys.KindImage:
		m, err := change.ParseImage(v)
		return string(k.Account), imageText(m), err
	case keys.KindOutbox:
		_, encoded, err := change.ParseOutboxRow(v)
		if err != nil {
			return "", "", err
		}
		p, err := describeRecord("record", encoded)
		return fmt.Sprintf("%s #%d", k.Stream, k.Seq), p.Text(), err
	case keys.KindReceived:
		c, err := change.ParseClosed(v)
		return fmt.Sprintf("%s/r%d", k.Origin, k.Source), closedText(c), err
	case keys.KindGeneration:
		return containerText(k.Partition), "closed", nil
	}
	return "", "", fmt.Errorf("row of kind %s: no decoder", k.Kind)
}

// rowText names a row within a partition of a service.
func rowText(s geo.Service, row []byte) string {
	switch s {
	case geo.Table:
		if rk, _, err := keys.CutString(row); err == nil {
			return fmt.Sprintf("%q", rk)
		}
	case geo.Catalog:
		return "it"
	}
	return fmt.Sprintf("row %x", row)
}
