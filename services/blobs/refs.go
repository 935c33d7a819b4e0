package blobs

import (
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
)

// RowChunks returns the payload chunks that a row of any service names: a replica that is fed by
// a range snapshot must have them before it counts (R3). Only rows of blobs and of blocks name
// chunks, and those of the lost-and-found. For bytes that are no row it returns ErrMalformed or keys.ErrMalformed.
func RowChunks(key, value []byte) ([]extent.Ref, error) {
	p, row, err := keys.ParsePartition(key)
	if err == nil && p.Account == keys.LostAndFound {
		f, err := change.ParseFound(value)
		return f.Chunks, err
	}
	if err != nil || p.Service != geo.Blob || len(row) == 0 || p.Account == keys.WrittenSince || p.Account == keys.LostChanges {
		return nil, err
	}
	switch row[0] {
	case rowBlob, rowSnapshot:
		if row[0] == rowSnapshot && plantedbugs.Planted(plantedbugs.SnapshotUnnamed) {
			return nil, nil
		}
		b, err := parseRow(value)
		return b.Chunks, err
	case rowBlock:
		b, err := parseBlock(value)
		return b.Chunks, err
	}
	return nil, nil
}

// ChunkSpans are the spans of clients' keys in a service outside of which RowChunks finds none: of tables, queues and the
// catalog, what was lost and found.
func ChunkSpans(s geo.Service) []geo.Span {
	prefix := keys.AppendService(nil, s)
	if s != geo.Blob {
		prefix = keys.AppendAccount(nil, s, keys.LostAndFound)
	}
	return []geo.Span{{Start: string(prefix), End: string(keys.PrefixEnd(prefix))}}
}
