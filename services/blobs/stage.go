package blobs

import (
	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/kv"
)

// PutBlock is Put Block (protocol/blob.md B10): it keeps a block for a later Put Block
// List. Readers of the blob see nothing of it. Its chunks are durable before it is
// submitted (R3).
type PutBlock struct {
	// Command has no Conditions: the operation takes none.
	Command
	// ID is decoded, 1 to BlockIDMax bytes.
	ID string
	// Block is not used again once the command is submitted.
	Block Block
}

// Admit tests what does not depend on the block, on the state that get shows, so that a
// large body can be refused before it is read. Evaluate tests again.
func (w *PutBlock) Admit(get kv.Getter, now geo.Timestamp) error {
	w.InTime(now)
	_, _, err := w.admit(get, now)
	return err
}

// admit returns the session with the block counted.
func (w *PutBlock) admit(get kv.Getter, at geo.Timestamp) (s Staging, left bool, err error) {
	b, err := headOf(get, w.Name)
	switch {
	case err != nil:
		return s, false, err
	case b.Appended != nil:
		return s, false, storageerr.InvalidBlobType
	}
	if err := w.check(true, false, &b); err != nil {
		return s, false, err
	}
	if err := b.Online(); err != nil {
		return s, false, err
	}
	s, live, there, err := GetStaging(get, w.Name, at)
	if err != nil {
		return s, false, err
	}
	if !live {
		return Staging{Session: at, Last: at, Count: 1, IDLength: byte(len(w.ID)), Copying: s.Copying}, there, nil
	}
	if len(w.ID) != int(s.IDLength) {
		return s, false, storageerr.InvalidBlobOrBlock
	}
	_, known, err := getBlock(get, w.Name, s.Session, w.ID)
	if err != nil {
		return s, false, err
	}
	if !known {
		s.Count++
	}
	if s.Count > StagedMax {
		return s, false, storageerr.BlockCountExceedsLimit
	}
	s.Last = at
	return s, false, nil
}

// Evaluate implements services.Write.
func (w *PutBlock) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	s, left, err := w.admit(get, at)
	if err != nil {
		return services.Effect{}, err
	}
	value, err := w.Block.value()
	if err != nil {
		return services.Effect{}, err
	}
	w.Left = left
	return services.Effect{
		Ops: []change.Op{
			{Row: []byte{rowStaging}, Value: appendStaging(nil, &s)},
			{Row: blockRow(s.Session, w.ID), Value: value},
		},
		Chunks: w.Block.Chunks, Level: s.level(),
	}, nil
}
