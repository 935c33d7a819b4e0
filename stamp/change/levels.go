package change

import (
	"encoding/binary"

	"antipode/stamp/feature"
)

// Levels are the feature levels of a location, in its catalog: see package feature. They only rise.
type Levels struct{ Floor, Active feature.Level }

// Level is the feature level from which a kind of part may be written. Apply knows all kinds of the levels that its
// program knows, whatever is active.
func (k PartKind) Level() feature.Level {
	switch k {
	case PartFreeze, PartWaiting, PartSplit: // Reserved.
		return feature.Known + 1
	}
	return feature.Base
}

// AppendLevels appends the encoded levels: the body of a PartLevels, which is the stored value too.
func AppendLevels(dst []byte, l Levels) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, formatVersion), uint32(l.Floor))
	return binary.LittleEndian.AppendUint32(dst, uint32(l.Active))
}

// ParseLevels decodes levels that fill b.
func ParseLevels(b []byte) (Levels, error) {
	rd := reader{b: b}
	rd.version()
	l := Levels{Floor: feature.Level(rd.uint32()), Active: feature.Level(rd.uint32())}
	rd.failed = rd.failed || l.Active > l.Floor || l.Active < feature.Base
	if err := rd.end(); err != nil {
		return Levels{}, err
	}
	return l, nil
}

// Levels appends the levels that hold from here on.
func (b *Builder) Levels(l Levels) {
	start := b.begin(PartLevels)
	b.buf = AppendLevels(b.buf, l)
	b.end(start)
}

// FloorOf returns the floor that a group raises; Base for one that raises none, or that cannot be decoded.
func FloorOf(group []byte) feature.Level {
	floor := feature.Base
	g, err := ParseGroup(group)
	if err != nil {
		return floor
	}
	_ = g.Parts(func(kind PartKind, body []byte) error { // What it cannot cut is damaged.
		if kind != PartLevels {
			return nil
		}
		l, err := ParseLevels(body)
		floor = max(floor, l.Floor)
		return err
	})
	return floor
}
