package change

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"antipode/geo"
)

// Lost is a change that a former primary had committed, and that the location which became the primary without it does not
// have (R22). Its key has the stream and the number: see keys.Lost.
type Lost struct {
	// At is when it was committed. Surely reports that it was surely answered; else it perhaps was.
	At     geo.Timestamp
	Surely bool
	// Bytes is the length of the record, Payload that of the chunks it names.
	Bytes, Payload uint64
	// Partition is the encoded prefix that its keys share. Ops are what it did, without the values: what the rows held
	// last is in the lost-and-found.
	Partition []byte
	Ops       []Op
}

// LostOf returns what is kept of a record.
func LostOf(r *Record, encoded []byte, surely bool) Lost {
	v := Volume{}.Add(r, encoded)
	out := Lost{At: r.CommitTime, Surely: surely, Bytes: v.Bytes, Payload: v.Payload, Partition: r.Partition}
	for _, op := range r.Ops {
		out.Ops = append(out.Ops, Op{Delete: op.Delete, Row: op.Row})
	}
	return out
}

// flagSurely in an encoded Lost: it was surely answered.
const flagSurely = 1

// AppendLost appends an encoded lost change.
func AppendLost(dst []byte, l Lost) []byte {
	flags := byte(0)
	if l.Surely {
		flags = flagSurely
	}
	dst = append(dst, formatVersion, flags)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(l.At))
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, l.Bytes), l.Payload)
	dst = append(binary.AppendUvarint(dst, uint64(len(l.Partition))), l.Partition...)
	dst = binary.AppendUvarint(dst, uint64(len(l.Ops)))
	for _, op := range l.Ops {
		dst = appendOp(dst, Op{Delete: op.Delete, Row: op.Row})
	}
	return dst
}

// ParseLost decodes a lost change that fills b, which it aliases.
func ParseLost(b []byte) (Lost, error) {
	rd := reader{b: b}
	rd.version()
	flags := rd.byte()
	l := Lost{At: geo.Timestamp(rd.uint64()), Surely: flags == flagSurely, Bytes: rd.uvarint(), Payload: rd.uvarint(), Partition: rd.bytes()}
	l.Ops = rd.ops()
	valued := slices.ContainsFunc(l.Ops, func(op Op) bool { return len(op.Value) > 0 })
	rd.failed = rd.failed || valued || flags > flagSurely
	if err := rd.end(); err != nil {
		return Lost{}, err
	}
	return l, nil
}

// LostClaim is what a range of a former primary claims about the changes that it has and the present one has not (R22).
type LostClaim struct {
	Version int `json:"v"`
	// Number and Location are the epoch that the present primary began.
	Number   geo.EpochNumber `json:"epoch"`
	Location geo.Location    `json:"location"`
	// Kept is when the changes had been kept.
	Kept geo.Timestamp `json:"kept"`
	// Changes counts them in this range; Perhaps those of them that were perhaps not answered.
	Changes uint64 `json:"changes"`
	Perhaps uint64 `json:"perhaps,omitempty"`
	// Incomplete is set if there may be others than those that were kept, with commit times above Since, and why.
	Incomplete bool          `json:"incomplete,omitempty"`
	Since      geo.Timestamp `json:"since,omitempty"`
	Why        string        `json:"why,omitempty"`
	// Streams are where the changes are: numbers above After, up to To.
	Streams []LostStream `json:"streams,omitempty"`
	// Rewound is set in the claim of the catalog once its containers and tables are those of the present primary: before,
	// one that is deleted here may live there.
	Rewound bool `json:"rewound,omitempty"`
	// Regained is set in the claim of another range whose location has such a claim, once its gate has opened by the rewound
	// catalog.
	Regained bool `json:"regained,omitempty"`
	// Swept are the containers and tables that live, of which this range has deleted all rows with a lost deletion.
	Swept []LostContainer `json:"swept,omitempty"`
}

// LostContainer is a generation of a container or a table, by its name in keys.
type LostContainer struct {
	Name    string          `json:"name"`
	Epoch   geo.EpochNumber `json:"epoch"`
	Created geo.Timestamp   `json:"created"`
}

// LostStream is a stream of the former primary that has changes which were kept.
type LostStream struct {
	// Number is the epoch of the stream, whose location is the former primary.
	Number geo.EpochNumber `json:"epoch"`
	Lane   geo.Lane        `json:"lane"`
	After  geo.Seq         `json:"after"`
	To     geo.Seq         `json:"to"`
}

// GeoEpoch returns the epoch that the present primary began.
func (c *LostClaim) GeoEpoch() geo.Epoch { return geo.Epoch{Number: c.Number, Location: c.Location} }

// AppendLostClaim appends an encoded claim.
func AppendLostClaim(dst []byte, c LostClaim) []byte {
	c.Version = formatVersion
	b, _ := json.Marshal(c) // It has no value that JSON lacks.
	return append(dst, b...)
}

// ParseLostClaim decodes a claim.
func ParseLostClaim(b []byte) (c LostClaim, err error) {
	if err := json.Unmarshal(b, &c); err != nil {
		return c, errors.Join(ErrMalformed, err)
	}
	if c.Version != formatVersion {
		return c, fmt.Errorf("%w: claim of version %d", ErrVersion, c.Version)
	}
	return c, nil
}
