package atom

import (
	"antipode/api/tables/odata"
	"antipode/services/tables"
	"antipode/services/tables/entity"
)

// Upper bounds of what the parts of a document take, in bytes.
const (
	// fixedBytes is above the elements of a feed or of an entry without properties.
	fixedBytes = 3 << 9
	// memberBytes is above what a property takes besides its name, in both of its tags, and a value
	// of variable size.
	memberBytes = 64
	// The longest that a byte becomes: of a text, of an attribute, and of a key in a path.
	textBytes      = 5
	attributeBytes = 6
	pathBytes      = 3
)

// FeedStartMax is above what AppendFeedStart and AppendFeedEnd append.
func (Codec) FeedStartMax(set *odata.Set) int {
	return fixedBytes + attributeBytes*(2*len(set.Base)+4*len(set.Table))
}

// TableMax is above what AppendTable appends.
func (Codec) TableMax(set *odata.Set, name string) int { return frameMax(set, name, "") }

// EntityMax is above what AppendEntity appends, by the size of Props alone: up to five times as
// much. EntityBound is closer.
func (Codec) EntityMax(set *odata.Set, e tables.Entity) int {
	r := entity.Read(e.Props)
	return frameMax(set, e.PK, e.RK) + textBytes*len(e.Props) + memberBytes*r.Len()
}

// EntityBound is EntityMax by the values: it looks at each of them.
func (Codec) EntityBound(set *odata.Set, e tables.Entity) int {
	n := frameMax(set, e.PK, e.RK)
	r := entity.Read(e.Props)
	for p, ok := r.Next(); ok; p, ok = r.Next() {
		n += memberBytes + 2*len(p.Name)
		switch p.Type {
		case entity.String:
			n += textLen(p.Value)
		case entity.Binary:
			n += (len(p.Value) + 2) / 3 * 4
		}
	}
	return n
}

// frameMax is above what stands around the properties: the head, with the path of the keys twice,
// the keys, nulls, and the end of the feed.
func frameMax(set *odata.Set, pk, rk string) int {
	n := fixedBytes + attributeBytes*(2*len(set.Base)+4*len(set.Table)+len(set.Account)) +
		(textBytes+2*pathBytes)*(len(pk)+len(rk))
	if set.Select != nil {
		n += len(set.Select.Text) + len(`<d: m:null="true" />`)*len(set.Select.Names)
	}
	return n
}
