package sim

import (
	"fmt"
	"strconv"
	"strings"

	"antipode/geo"
	"antipode/services/tables"
	"antipode/services/tables/entity"
	"antipode/stamp/keys"
)

// groupKeys are the row keys of a group: entities of one partition that every
// transaction writes together, with equal properties. So their rows are there all or
// none, and equal to the byte, in every state that anybody may see.
var groupKeys = [...]string{"a", "b", "c"} //nolint:gochecknoglobals // A table.

// groupsOf is how many groups a table has, each in another partition.
const groupsOf = 3

// groupPrefix begins the partition keys of groups.
const groupPrefix = "g"

// isGroup reports whether a partition holds a group.
func isGroup(p keys.Partition) bool {
	return p.Service == geo.Table && strings.HasPrefix(p.Object, groupPrefix)
}

func (s *Sim) drawGroup(a *account) keys.Partition {
	return s.drawContainer(a, geo.Table).partition(groupPrefix + strconv.Itoa(s.rng.IntN(groupsOf)))
}

// The kinds of transactions.
const (
	replaceGroup = iota
	mergeGroup
	insertGroup
	swapGroup // by the ETag that the client read
	deleteGroup
	// brokenGroup fails at its last operation, always: nothing of it may show.
	brokenGroup
	transactionKinds
)

// transaction draws an entity group transaction.
func (s *Sim) transaction(a *account) *tables.Batch {
	p := s.drawGroup(a)
	kind := s.rng.IntN(transactionKinds)
	name := "w"
	if kind == mergeGroup {
		name += strconv.Itoa(s.rng.IntN(3))
	}
	props := entity.Build(nil)
	if err := props.AddInt64(name, int64(len(s.ops))); err != nil {
		s.fail(err)
	}
	rows := a.home.history[geo.FirstRange(geo.Table)].m.parts[string(p.Append(nil))]
	b := &tables.Batch{}
	for i, key := range groupKeys {
		w := &tables.Write{
			Account: p.Account, Table: p.Container, Generation: p.Generation, PK: p.Object, RK: key, Props: props.Bytes(),
			Op: [...]tables.Op{tables.InsertOrReplace, tables.InsertOrMerge, tables.Insert, tables.Update, tables.Delete, tables.InsertOrReplace}[kind],
		}
		switch {
		case kind == deleteGroup:
			w.Match.Any = true
		case kind == swapGroup:
			if e, err := tables.Get(partitionRows{p, rows}, p, key); err == nil {
				w.Match.Tag = e.Timestamp
			}
		case kind == brokenGroup && i == len(groupKeys)-1:
			w.Op = tables.Update // Under a tag that no entity has.
		}
		if err := b.Add(w); err != nil {
			s.fail(err)
		}
	}
	return b
}

// checkWhole: a group shows all of a transaction or nothing of it (invariant 2).
func (s *Sim) checkWhole(who string, p keys.Partition, rows map[string]string) {
	if !isGroup(p) {
		return
	}
	s.counts.GroupChecked++
	first, there := rows[string(keys.AppendString(nil, groupKeys[0]))]
	for _, key := range groupKeys[1:] {
		if v, ok := rows[string(keys.AppendString(nil, key))]; ok != there || v != first {
			s.fail(fmt.Errorf("%w: %s shows %q of %s", ErrMixed, who, rows, p.Object))
			return
		}
	}
}
