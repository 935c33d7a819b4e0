package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"

	"antipode/stamp/extent"
)

// Extent is one extent file.
type Extent struct {
	Type   string `json:"type"`
	Extent uint64 `json:"extent"`
	File   string `json:"file"`
	// Bytes were written, Durable of them fsynced for certain.
	Bytes   int64 `json:"bytes"`
	Durable int64 `json:"durable"`
	Chunks  int   `json:"chunks"`
	// GarbagePercent is the share of it in which no chunk lives. Chunks that were deleted
	// live again after a restart until the node compares them with what its state names.
	GarbagePercent int   `json:"garbage_percent"`
	LiveBytes      int64 `json:"live_bytes"`
	Damaged        int   `json:"damaged"`
	LostBytes      int64 `json:"lost_bytes"`
}

// Text implements Row.
func (e Extent) Text() string {
	return fmt.Sprintf("extent %s  %d bytes, durable to %d, %d chunks in %d bytes, %d%% garbage, %d damaged, %d bytes lost",
		e.File, e.Bytes, e.Durable, e.Chunks, e.LiveBytes, e.GarbagePercent, e.Damaged, e.LostBytes)
}

// Chunk is one chunk of payload.
type Chunk struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Length uint32 `json:"length"`
	CRC    string `json:"crc32c"`
	Extent uint64 `json:"extent"`
	Offset int64  `json:"offset"`
	// State is sound, damaged, or unproven: whole, but nothing shows that it was fsynced.
	State string `json:"state"`
}

// Text implements Row.
func (c Chunk) Text() string {
	return fmt.Sprintf("chunk %s  %d bytes, crc %s, at %d of extent %d, %s", c.ID, c.Length, c.CRC, c.Offset, c.Extent, c.State)
}

// Extents reports the chunk store: each extent, behind it its damaged chunks, or all of
// them. It returns how many places are damaged.
func Extents(ctx context.Context, n Node, o Options, emit Emit) (damaged int, err error) {
	r := &report{emit: emit}
	dir := n.fs.PathJoin(n.Dir, "extents")
	store, err := extent.OpenReadOnly(n.fs, dir, extent.Options{})
	if err != nil {
		return 0, fmt.Errorf("read the extents: %w", err)
	}
	defer func() { err = joinClose(err, store) }()
	if o.Verify {
		if err := verify(ctx, store); err != nil {
			return 0, err
		}
	}
	for _, f := range store.Files() {
		name := n.fs.PathBase(f.Path)
		row := Extent{
			Type: "extent", Extent: f.Number, File: name, Bytes: f.Bytes, Durable: f.Durable, Chunks: f.Chunks,
			LiveBytes: f.LiveBytes, Damaged: f.Damaged, LostBytes: f.LostBytes,
		}
		if f.Bytes > 0 {
			row.GarbagePercent = int(100 * (f.Bytes - f.LiveBytes) / f.Bytes)
		}
		if err := emit(row); err != nil {
			return r.damaged, err
		}
		if err := r.chunks(store, f.Number, name, o.Chunks && !o.Summary); err != nil {
			return r.damaged, err
		}
		if f.LostBytes == 0 {
			continue
		}
		detail := fmt.Sprintf("%d bytes that were fsynced hold nothing that can be recognized", f.LostBytes)
		if err := r.damage(Damage{Store: "extents", File: name, Detail: detail}); err != nil {
			return r.damaged, err
		}
	}
	return r.damaged, nil
}

// chunks lists the damaged chunks of an extent, or of all.
func (r *report) chunks(store *extent.Store, file uint64, name string, all bool) error {
	for _, p := range store.Places(file) {
		row := Chunk{
			Type: "chunk", ID: p.Ref.ID.String(), Length: p.Ref.Length, CRC: fmt.Sprintf("%08x", p.Ref.CRC),
			Extent: file, Offset: p.Offset, State: "sound",
		}
		switch {
		case p.Damaged:
			row.State = "damaged"
		case p.Unproven:
			row.State = "unproven"
		}
		if all {
			if err := r.emit(row); err != nil {
				return err
			}
		}
		if !p.Damaged {
			continue
		}
		err := r.damage(Damage{
			Store: "extents", File: name, From: p.Offset, To: p.Offset + int64(p.Ref.Length),
			Detail: fmt.Sprintf("chunk %s of %d bytes is damaged; a running node fetches it from a peer", p.Ref.ID, p.Ref.Length),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// verify reads every chunk; what is damaged is recorded in the store.
func verify(ctx context.Context, store *extent.Store) error {
	for {
		_, err := store.Scrub(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, extent.ErrCorrupt):
			return err
		}
	}
}
