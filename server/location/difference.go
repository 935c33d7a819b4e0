package location

import (
	"cmp"
	"fmt"
	"strings"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/verify"
	"antipode/services/blobs"
	"antipode/services/queues"
	"antipode/stamp/keys"
)

// describeDifference words a difference for people.
func describeDifference(d verify.Difference) wire.VerifyDifference {
	out := wire.VerifyDifference{Kind: string(d.Kind), Chunk: d.Chunk, Reason: d.Reason}
	p, row, err := keys.ParsePartition(d.Key)
	if err != nil {
		out.Object = fmt.Sprintf("%x", d.Key)
		return out
	}
	out.Service, out.Container, out.Object = p.Service.String(), p.Container, p.Object
	switch p.Service {
	case geo.Table:
		if key, rest, err := keys.CutString(row); err == nil && len(rest) == 0 {
			out.Row = key
			return out
		}
	case geo.Blob:
		i, _ := blobs.DescribeRow(row, nil) // The kind is set by the key alone.
		if out.Row = cmp.Or(i.Kind, "row"); len(row) > 1 {
			out.Row += fmt.Sprintf(" %x", row[1:])
		}
		return out
	case geo.Queue:
		i, _ := queues.DescribeRow(row, nil) // The same.
		out.Row = strings.TrimSuffix(cmp.Or(i.Kind, "row")+" "+i.Of, " ")
		return out
	}
	if len(row) > 0 {
		out.Row = fmt.Sprintf("%x", row)
	}
	return out
}
