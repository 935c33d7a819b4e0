package change

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// This build understands what it writes, and also a group that it cannot apply because it is damaged. It does not
// understand a group of a later version, or a part of an unknown or reserved kind. Nor does it understand a part
// with a record or closed record of a later version, or a stop for a reason of one. The checksum has to be right
// (R1, R11).
func TestR1UnderstoodGroups(t *testing.T) {
	small := goldenSmallGroup(t)
	part := func(kind PartKind, body []byte) []byte {
		var b Builder
		b.Closed(4)
		b.Raw(kind, body)
		b.Closed(6)
		return b.Finish(GroupID{7, 12}, GroupID{7, 11}, 0)
	}
	laterRecord := edit(goldenRecord(t, "set"), setByte(0, 2))
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"every part":                       {goldenGroup(t), nil},
		"a wipe":                           {goldenWipe(), nil},
		"nothing":                          {nil, nil},
		"a made-up kind":                   {part(99, []byte("x")), ErrVersion},
		"kind 0":                           {part(0, nil), ErrVersion},
		"the kind that is free":            {part(10, nil), ErrVersion},
		"a reserved kind":                  {part(PartSplit, nil), ErrVersion},
		"a record of version 2":            {part(PartReceived, laterRecord), ErrVersion},
		"a change of version 2":            {part(PartChange, laterRecord), ErrVersion},
		"a closed record of version 3":     {part(PartReceivedClosed, []byte{3, 0}), ErrVersion},
		"a record ahead of the clock":      {part(PartReceivedClosed, goldenBytes(t, "closed", "ahead of the clock")), nil},
		"a stop for a made-up reason":      {part(PartStop, AppendStopPart(nil, geo.Stream{Account: "a"}, Stop{Reason: stopEnd})), ErrVersion},
		"a stop":                           {part(PartStop, AppendStopPart(nil, geo.Stream{Account: "a"}, Stop{Reason: stopEnd - 1})), nil},
		"a damaged stop":                   {part(PartStop, []byte{9}), nil},
		"a group of version 2":             {edit(small, setByte(0, 2)), ErrVersion},
		"a damaged version":                {setByte(0, 2)(bytes.Clone(small)), nil},
		"a damaged kind":                   {setByte(groupHeader, 99)(bytes.Clone(small)), nil},
		"a part over the end":              {edit(small, setByte(groupHeader+1, 0xff)), nil},
		"a record of version 1, damaged":   {part(PartReceived, []byte{1, 2, 3}), nil},
		"a made-up kind behind the damage": {part(PartReceived, part(99, nil)), nil},
	} {
		require.ErrorIs(t, Understood(c.b), c.want, name)
	}
}
