package odata

import "antipode/services/tables/entity"

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

// FeedStartMax is above what AppendFeedStart and AppendTablesStart append.
func (a *Answer) FeedStartMax() int {
	n := fixedBytes + escapedBytes*(len(a.Base)+len(a.Table))
	if a.Select != nil {
		n += escapedBytes * 3 * len(a.Select.text) // A blank becomes %20.
	}
	return n
}

// TableMax is above what AppendTable and AppendTablesEntry append.
func (a *Answer) TableMax(name string) int { return a.frameMax(len(name)) }

// EntityMax is above what AppendEntity and AppendFeedEntity append, by the size of props
// alone: up to six times what they do. EntityBound is a closer one.
func (a *Answer) EntityMax(pk, rk string, props []byte) int {
	r := entity.Read(props)
	return a.frameMax(len(pk)+len(rk)) + escapedBytes*len(props) + memberBytes*r.Len()
}

// EntityBound is EntityMax by the values: it looks at each of them.
func (a *Answer) EntityBound(pk, rk string, props []byte) int {
	n := a.frameMax(len(pk) + len(rk))
	r := entity.Read(props)
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
func (a *Answer) frameMax(keyBytes int) int {
	n := fixedBytes + 2*escapedBytes*(len(a.Base)+keyBytes) + 4*escapedBytes*(len(a.Table)+len(a.Account))
	if a.Select != nil {
		n += escapedBytes*len(a.Select.text) + len(`"":null,`)*len(a.Select.names)
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
