package json

import (
	"antipode/api/tables/odata"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// Upper bounds of what the parts of a document take, in bytes.
const (
	// fixedBytes is above the names and punctuation of an entity's metadata, keys and
	// timestamp.
	fixedBytes = 1 << 10
	// memberBytes is above what a property takes besides its name, in the document once
	// and in the annotation once, and a value of variable size.
	memberBytes = 80
	// escapedBytes is the longest escape of one byte.
	escapedBytes = 6
)

// FeedStartMax is above what AppendFeedStart appends.
func (l Level) FeedStartMax(set *odata.Set) int {
	n := fixedBytes + escapedBytes*(len(set.Base)+len(set.Table))
	if set.Select != nil {
		n += escapedBytes * 3 * len(set.Select.Text) // A blank becomes %20.
	}
	return n
}

// TableMax is above what AppendTable appends.
func (l Level) TableMax(set *odata.Set, name string) int { return frameMax(set, len(name)) }

// EntityMax is above what AppendEntity appends, by the size of Props alone: up to six times as much. EntityBound is closer.
func (l Level) EntityMax(set *odata.Set, e tables.Entity) int {
	r := entity.Read(e.Props)
	return frameMax(set, len(e.PK)+len(e.RK)) + escapedBytes*len(e.Props) + memberBytes*r.Len()
}

// EntityBound is EntityMax by the values: it looks at each of them.
func (l Level) EntityBound(set *odata.Set, e tables.Entity) int {
	n := frameMax(set, len(e.PK)+len(e.RK))
	r := entity.Read(e.Props)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		n += memberBytes + 2*len(p.Name)
		switch p.Type {
		case entity.String:
			n += escapedLen(p.Value)
		case entity.Binary:
			n += (len(p.Value) + 2) / 3 * 4
		}
	}
	return n
}

// frameMax is above what stands around the properties: metadata, keys of keyBytes, and
// nulls.
func frameMax(set *odata.Set, keyBytes int) int {
	n := fixedBytes + 2*escapedBytes*(len(set.Base)+keyBytes) + 4*escapedBytes*(len(set.Table)+len(set.Account))
	if set.Select != nil {
		n += escapedBytes*len(set.Select.Text) + len(`"":null,`)*len(set.Select.Names)
	}
	return n
}

// escapedLen is the length of s as appendEscaped appends it.
func escapedLen(s []byte) int {
	at, _ := plain(s, 0)
	n := len(s)
	for _, c := range s[at:] {
		switch {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			n++
		case c < 0x20:
			n += escapedBytes - 1
		}
	}
	return n
}
